"""A case of the schema `anchor-transcript/1`, made ready to run: a plan, its batches, and what is checked when."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias, TypeVar, cast

from penstock.pipelines.errors import DefinitionError, NotInContractError, TranscriptError
from penstock.pipelines.plan.aggregates import Mean, Output, Sum
from penstock.pipelines.plan.check import check_stage
from penstock.pipelines.plan.checks import not_negative
from penstock.pipelines.plan.policies import DeltaPolicy
from penstock.pipelines.plan.sinks import PaneLog
from penstock.pipelines.plan.source import Column, Source, Topic
from penstock.pipelines.plan.stage import Accumulation, FinalPane, OnTimePane, Plan, Stage
from penstock.pipelines.plan.triggers import Default
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling, by_processing_time, in_order
from penstock.pipelines.transcripts.engine import Script
from penstock.pipelines.transcripts.expected import CHECKED
from penstock.pipelines.transcripts.form import flag_in, name_of, refuse_misspelt, said_of, told
from penstock.pipelines.transcripts.outputs import outputs_of
from penstock.pipelines.transcripts.steps import Steps
from penstock.pipelines.transcripts.triggers import trigger_of
from penstock.pipelines.transcripts.units import ENDS, Unit, unit_of
from penstock.pipelines.transcripts.windows import window_of

CheckKind: TypeAlias = Literal["expect", "expect_all", "expect_late", "state_sum", "state_windows"]
CHECKS: tuple[CheckKind, ...] = ("expect", "expect_late", "state_sum", "state_windows", "expect_all")

ACCUMULATION: dict[str, Accumulation] = {
    "accumulating": "accumulating",
    "discarding": "discarding",
    "retracting": "retracting",
    "accumulating_and_retracting": "retracting",
    "accumulating_retracting": "retracting",
}
ON_TIME: dict[str, OnTimePane] = {
    "always": "always",
    "fire_always": "always",
    "when_changed": "when_changed",
    "fire_if_non_empty": "when_changed",
}


FINAL: dict[str, FinalPane] = {"never": "never", "when_changed": "when_changed", "always": "always"}

SETTINGS = (
    *("name", "unit", "window", "trigger", "accumulation", "allowed_lateness", "allowed_lateness_ms"),
    *("on_time_pane", "on_time_behavior", "final_pane", "combine", "aggregate", "timestamp_combiner"),
    *("steps", "must_fail_with", "engine_specific"),
)
"""What a case may say beside its steps."""

REMARKS = ("comment", "note", "notes", "state_not_observable")
"""What a step may say to people alone."""

Word = TypeVar("Word")

FOR_EVER = 10**15


@dataclass(frozen=True)
class Check:
    """What is expected once so many batches have run."""

    kind: CheckKind
    after: int
    expected: Any


@dataclass(frozen=True)
class Case:
    """One case. `must_fail` turns the verdict round; an `engine_specific` case informs and does not fail."""

    id: str
    script: Script
    checks: tuple[Check, ...]
    unit: Unit
    must_fail: bool = False
    engine_specific: bool = False


def case_of(node: Mapping[str, Any]) -> Case:
    """Read a case; what it says that cannot be run is refused in a sentence."""
    name = name_of(node)
    if "cannot" in node:
        raise NotInContractError(str(node["cannot"]))
    if "broken" in node:
        raise TranscriptError(f"the case is not of its file's schema: {node['broken']}")
    try:
        return read_case(name, node)
    except DefinitionError as problem:
        raise TranscriptError(str(problem)) from problem
    except RecursionError as problem:
        raise TranscriptError("the case is nested too deep. Mend its form") from problem
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise TranscriptError(f"the case is not of the schema: {told(problem)}") from problem


def read_case(name: str, node: Mapping[str, Any]) -> Case:
    """Read the parts of a case."""
    refuse_misspelt(node, SETTINGS, "the case")
    unit = unit_of(node.get("unit"))
    steps = steps_of(node)
    check_expected(steps, node)
    checks = checks_of([*steps, node])
    outputs = outputs_of(node, [pane for check in checks for pane in panes_in(check)])
    batches = Steps(unit, node).batches(steps)
    values: list[Any] = [record.fields["value"] for b in batches for record in b.records]
    plan = plan_of(node, unit, outputs, values)
    refuse_unlike(plan)
    check_stage(plan, plan.stage)
    script = Script(name, plan, tuple(batches))
    must_fail = node.get("must_fail_with") is not None
    return Case(name, script, checks, unit, must_fail, flag_in(node, "engine_specific", ""))


def steps_of(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps; one that says nothing which is known would pass unseen."""
    steps = node["steps"]
    if not isinstance(steps, list) or not steps:
        raise TranscriptError(f"the case is not of the schema: `steps` is {steps!r}; write a list of steps")
    for number, step in enumerate(steps, 1):
        words = set(step) if isinstance(step, Mapping) else set()
        if not words & {*Steps.MOVES, *CHECKS, *REMARKS}:
            known = ", ".join([*sorted(Steps.MOVES), *CHECKS])
            raise TranscriptError(f"step {number} is {step!r}; write one of {known}")
        refuse_misspelt(step, {*Steps.MOVES, *CHECKS}, f"step {number}")
    return steps


def check_expected(steps: Sequence[Mapping[str, Any]], case: Mapping[str, Any]) -> None:
    """Refuse what could not be expected of any run."""
    places = [*((f"step {number}, ", step) for number, step in enumerate(steps, 1)), ("", case)]
    for place, node in places:
        for kind in CHECKS:
            if kind in node:
                CHECKED[kind](node[kind], f"{place}`{kind}`")


def word_of(node: Mapping[str, Any], names: Sequence[str], known: Mapping[str, Word]) -> Word:
    """Return what a word stands for; where none of the fields is there, what the first word does."""
    found = next((node[name] for name in names if name in node), next(iter(known)))
    if not isinstance(found, str) or found.lower() not in known:
        raise TranscriptError(
            f"the case is not of the schema: `{names[0]}` is {found!r}; write one of {', '.join(known)}"
        )
    return known[found.lower()]


def refuse_unlike(plan: Plan) -> None:
    """Refuse sums and distances of what is no number."""
    kind = next(column.type for column in plan.sources[0].columns if column.name == "value")
    summed = [output.name for output in plan.stage.aggregates if isinstance(output.of, Sum | Mean)]
    match plan.stage.window:
        case Tumbling(DeltaPolicy()) | SlidingOrder(evict=DeltaPolicy()) | SlidingOrder(show=DeltaPolicy()):
            summed.append("delta")
    if summed and kind not in ("long", "double"):
        raise TranscriptError(f"{summed[0]} needs numbers, and its values are of type {kind}")


def checks_of(steps: Iterable[Mapping[str, Any]]) -> tuple[Check, ...]:
    """Return what is checked, and after how many batches.

    What comes after the last `expect` is expected to be nothing, unless all panes are compared at the end, or
    the case looks at the state alone.
    """
    checks: list[Check] = []
    batches = 0
    for step in steps:
        batches += bool(step.keys() & Steps.MOVES)
        checks += [Check(kind, batches, step[kind]) for kind in CHECKS if kind in step]
    kinds = {check.kind for check in checks}
    if "expect" in kinds or not kinds:
        checks.append(Check("expect", batches, []))
    return tuple(checks)


def panes_in(check: Check) -> Sequence[Mapping[str, Any]]:
    """Return the panes that a check expects."""
    if check.kind in ("expect", "expect_all"):
        return cast("Sequence[Mapping[str, Any]]", check.expected)
    return [check.expected] if isinstance(check.expected, Mapping) else []


def plan_of(node: Mapping[str, Any], unit: Unit, outputs: tuple[Output, ...], values: list[Any]) -> Plan:
    """Return the plan of a case; its triggers may finish, as those of other systems do.

    It is named after nothing in the case, so that cases which ask for the same have equal plans.
    """
    with said_of("`window`"):
        window = window_of(node["window"], unit)
    with said_of("`trigger`"):
        trigger = Default() if in_order(window) else trigger_of(node.get("trigger"), unit)
    lateness = 0 if in_order(window) or by_processing_time(window) else lateness_of(node, unit)
    stage = Stage(
        name="transcript",
        inputs=("elements",),
        window=window,
        aggregates=outputs,
        key=("key",),
        trigger=trigger,
        lateness=lateness,
        accumulation=word_of(node, ["accumulation"], ACCUMULATION),
        on_time_pane=word_of(node, ["on_time_pane", "on_time_behavior"], ON_TIME),
        final_pane=word_of(node, ["final_pane"], FINAL),
        may_finish=True,
        sinks=(PaneLog("transcript"),),
    )
    return Plan("transcript", (source_of(values),), (stage,))


def lateness_of(node: Mapping[str, Any], unit: Unit) -> int:
    """Return how late an element may come; for ever is longer than any case."""
    found = node.get("allowed_lateness")
    if isinstance(found, str) and ENDS.get(found) == inf:
        return FOR_EVER
    lateness = unit.optional(node, "allowed_lateness")
    not_negative(lateness, "allowed_lateness")
    return lateness


def source_of(values: Iterable[Any]) -> Source:
    """Return the source of a case: elements with key, value, time and mark."""
    columns = (
        Column("key", "string"),
        Column("value", type_of(values)),
        Column("ts", "BIGINT"),
        Column("punctuation", "boolean"),
        Column("output_time", "long"),
    )
    return Source("elements", Topic("elements"), columns, "ts")


def type_of(values: Iterable[Any]) -> str:
    """Return the type that holds all values."""
    kinds = {type(value) for value in values if value is not None}
    for name, alike in (("long", {int}), ("double", {int, float}), ("boolean", {bool}), ("string", {str})):
        if kinds <= alike:
            return name
    raise TranscriptError(
        f"its values are of several types: {', '.join(sorted(kind.__name__ for kind in kinds))}"
    )
