"""Parses a case of the schema `anchor-transcript/1` into a plan, its batches and its checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias, TypeVar, cast

from penstock.conformance.aggregate_parser import parse_outputs
from penstock.conformance.engines import Script
from penstock.conformance.expectation_validation import EXPECTATION_VALIDATORS
from penstock.conformance.field_validation import (
    case_name,
    describe_python_error,
    parse_flag,
    prefix_errors,
    refuse_misspelled_fields,
)
from penstock.conformance.step_parser import StepParser
from penstock.conformance.time_units import INFINITE_TIMES, TimeUnit, parse_unit
from penstock.conformance.trigger_parser import parse_trigger
from penstock.conformance.window_parser import parse_window
from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.definition.argument_checks import require_non_negative
from penstock.engine.errors import DefinitionError, TranscriptError
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import AccumulationMode, FinalPanePolicy, OnTimePanePolicy, Plan, Stage
from penstock.engine.plan.validation.plans import check_stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.default import Default

CheckKind: TypeAlias = Literal["expect", "expect_all", "expect_late", "state_sum", "state_windows"]
CHECK_KINDS: tuple[CheckKind, ...] = ("expect", "expect_late", "state_sum", "state_windows", "expect_all")

ACCUMULATION_MODES: dict[str, AccumulationMode] = {
    "accumulating": "accumulating",
    "discarding": "discarding",
    "retracting": "retracting",
    "accumulating_and_retracting": "retracting",
    "accumulating_retracting": "retracting",
}
ON_TIME_PANE_MODES: dict[str, OnTimePanePolicy] = {
    "always": "always",
    "fire_always": "always",
    "when_changed": "when_changed",
    "fire_if_non_empty": "when_changed",
}


FINAL_PANE_MODES: dict[str, FinalPanePolicy] = {
    "never": "never",
    "when_changed": "when_changed",
    "always": "always",
}

CASE_FIELDS = (
    *("name", "unit", "window", "trigger", "accumulation", "allowed_lateness", "allowed_lateness_ms"),
    *("on_time_pane", "on_time_behavior", "final_pane", "combine", "aggregate", "timestamp_combiner"),
    *("steps", "must_fail_with", "engine_specific"),
)
"""The fields of a case other than its steps."""

COMMENT_FIELDS = ("comment", "note", "notes", "state_not_observable")
"""The fields of a step that are only for people."""

Choice = TypeVar("Choice")

UNLIMITED_LATENESS_MS = 10**15


@dataclass(frozen=True)
class CaseCheck:
    """An expectation, with the number of batches after which it is checked."""

    kind: CheckKind
    after_batches: int
    expected: Any


@dataclass(frozen=True)
class Case:
    """One case.

    `must_fail` inverts the verdict. An `engine_specific` case is informative and never fails the run.
    """

    id: str
    script: Script
    checks: tuple[CaseCheck, ...]
    unit: TimeUnit
    must_fail: bool = False
    engine_specific: bool = False


def parse_case(node: Mapping[str, Any]) -> Case:
    """Parse a case; refuse what cannot run with an explanation."""
    name = case_name(node)
    try:
        return build_case(name, node)
    except DefinitionError as problem:
        raise TranscriptError(str(problem)) from problem
    except RecursionError as problem:
        raise TranscriptError("the case is nested too deeply. Flatten it") from problem
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise TranscriptError(
            f"the case does not match the schema: {describe_python_error(problem)}"
        ) from problem


def build_case(name: str, node: Mapping[str, Any]) -> Case:
    """Build a case from its fields."""
    refuse_misspelled_fields(node, CASE_FIELDS, "the case")
    unit = parse_unit(node.get("unit"))
    steps = require_steps(node)
    validate_expectations(steps, node)
    checks = collect_checks([*steps, node])
    outputs = parse_outputs(node, [pane for check in checks for pane in expected_panes(check)])
    batches = StepParser(unit, node).parse_batches(steps)
    values: list[Any] = [record.fields["value"] for batch in batches for record in batch.records]
    plan = build_plan(node, unit, outputs, values)
    refuse_non_numeric_values(plan)
    check_stage(plan, plan.only_stage)
    script = Script(name, plan, tuple(batches))
    must_fail = node.get("must_fail_with") is not None
    return Case(name, script, checks, unit, must_fail, parse_flag(node, "engine_specific", ""))


def require_steps(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps. A step without a known field is refused, because it would have no effect."""
    steps = node["steps"]
    if not isinstance(steps, list) or not steps:
        raise TranscriptError(
            f"the case does not match the schema: `steps` is {steps!r}; write a list of steps"
        )
    for number, step in enumerate(steps, 1):
        keys = set(step) if isinstance(step, Mapping) else set()
        if not keys & {*StepParser.MOVE_FIELDS, *CHECK_KINDS, *COMMENT_FIELDS}:
            allowed = ", ".join([*sorted(StepParser.MOVE_FIELDS), *CHECK_KINDS])
            raise TranscriptError(f"step {number} is {step!r}; write one of {allowed}")
        refuse_misspelled_fields(step, {*StepParser.MOVE_FIELDS, *CHECK_KINDS}, f"step {number}")
    return steps


def validate_expectations(steps: Sequence[Mapping[str, Any]], case: Mapping[str, Any]) -> None:
    """Refuse invalid expectations before the run."""
    labelled_nodes = [*((f"step {number}, ", step) for number, step in enumerate(steps, 1)), ("", case)]
    for label, node in labelled_nodes:
        for kind in CHECK_KINDS:
            if kind in node:
                EXPECTATION_VALIDATORS[kind](node[kind], f"{label}`{kind}`")


def parse_choice(node: Mapping[str, Any], names: Sequence[str], choices: Mapping[str, Choice]) -> Choice:
    """Return the meaning of a keyword; the first choice if the field is missing."""
    chosen = next((node[name] for name in names if name in node), next(iter(choices)))
    if not isinstance(chosen, str) or chosen.lower() not in choices:
        raise TranscriptError(
            f"the case does not match the schema: `{names[0]}` is {chosen!r}; write one of {', '.join(choices)}"
        )
    return choices[chosen.lower()]


def refuse_non_numeric_values(plan: Plan) -> None:
    """Refuse sums and differences of values that are not numbers."""
    value_type = next(column.type for column in plan.sources[0].columns if column.name == "value")
    numeric_uses = [
        output.name
        for output in plan.only_stage.aggregates
        if not accepts_values(output.aggregate, value_type)
    ]
    numeric_uses += ["delta"] * len(plan.only_stage.window.numeric_fields)
    if numeric_uses and value_type not in ("long", "double"):
        raise TranscriptError(f"{numeric_uses[0]} needs numbers, and its values are of type {value_type}")


def accepts_values(aggregate: Aggregate, value_type: str) -> bool:
    """Return whether an aggregate accepts values of this type."""
    try:
        aggregate.check_column_types({"value": value_type}, "aggregate")
    except DefinitionError:
        return False
    return True


def collect_checks(steps: Iterable[Mapping[str, Any]]) -> tuple[CaseCheck, ...]:
    """Return the checks, each with the number of batches before it.

    No output is expected after the last `expect`, unless all panes are compared at the end, or only the state is
    checked.
    """
    checks: list[CaseCheck] = []
    batches = 0
    for step in steps:
        batches += bool(step.keys() & StepParser.MOVE_FIELDS)
        checks += [CaseCheck(kind, batches, step[kind]) for kind in CHECK_KINDS if kind in step]
    kinds = {check.kind for check in checks}
    if "expect" in kinds or not kinds:
        checks.append(CaseCheck("expect", batches, []))
    return tuple(checks)


def expected_panes(check: CaseCheck) -> Sequence[Mapping[str, Any]]:
    """Return the panes that a check expects."""
    if check.kind in ("expect", "expect_all"):
        return cast("Sequence[Mapping[str, Any]]", check.expected)
    return [check.expected] if isinstance(check.expected, Mapping) else []


def build_plan(
    node: Mapping[str, Any], unit: TimeUnit, outputs: tuple[AggregateOutput, ...], values: list[Any]
) -> Plan:
    """Return the plan of a case; its triggers may finish, as in other systems.

    The plan's name does not depend on the case, so equal definitions have equal plans.
    """
    with prefix_errors("`window`"):
        window = parse_window(node["window"], unit)
    with prefix_errors("`trigger`"):
        trigger = Default() if window.is_record_ordered else parse_trigger(node.get("trigger"), unit)
    lateness = 0 if window.is_record_ordered or window.uses_processing_time else parse_lateness(node, unit)
    stage = Stage(
        name="transcript",
        inputs=("elements",),
        window=window,
        aggregates=outputs,
        key=("key",),
        trigger=trigger,
        lateness=lateness,
        accumulation=parse_choice(node, ["accumulation"], ACCUMULATION_MODES),
        on_time_pane=parse_choice(node, ["on_time_pane", "on_time_behavior"], ON_TIME_PANE_MODES),
        final_pane=parse_choice(node, ["final_pane"], FINAL_PANE_MODES),
        may_finish=True,
        sinks=(PaneLog("transcript"),),
    )
    return Plan("transcript", (build_source(values),), (stage,))


def parse_lateness(node: Mapping[str, Any], unit: TimeUnit) -> int:
    """Return the allowed lateness; infinite lateness is longer than any case."""
    raw_lateness = node.get("allowed_lateness")
    if isinstance(raw_lateness, str) and INFINITE_TIMES.get(raw_lateness) == inf:
        return UNLIMITED_LATENESS_MS
    lateness = unit.parse_optional_field(node, "allowed_lateness")
    require_non_negative(lateness, "allowed_lateness")
    return lateness


def build_source(values: Iterable[Any]) -> PlanSource:
    """Return the source of a case: elements with key, value, time and mark."""
    columns = (
        Column("key", "string"),
        Column("value", infer_value_type(values)),
        Column("ts", "BIGINT"),
        Column("punctuation", "boolean"),
        Column("output_time", "long"),
    )
    return PlanSource("elements", TopicOrigin("elements"), columns, "ts")


def infer_value_type(values: Iterable[Any]) -> str:
    """Return the type that fits all values."""
    kinds = {type(value) for value in values if value is not None}
    for type_name, python_types in (
        ("long", {int}),
        ("double", {int, float}),
        ("boolean", {bool}),
        ("string", {str}),
    ):
        if kinds <= python_types:
            return type_name
    raise TranscriptError(
        f"its values are of several types: {', '.join(sorted(kind.__name__ for kind in kinds))}"
    )
