"""What must hold between the parts of a plan; what one part can tell by itself it checks when it is made."""

from collections.abc import Iterable

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.aggregates import Aggregate, Members, OfInput, needs_arrival_order
from penstock.pipelines.plan.check_chain import check_alike, check_later
from penstock.pipelines.plan.check_ends import check_ends, check_outputs
from penstock.pipelines.plan.check_joins import check_join
from penstock.pipelines.plan.check_lookups import check_lookups
from penstock.pipelines.plan.check_names import check_names
from penstock.pipelines.plan.check_time import check_time
from penstock.pipelines.plan.check_when import check_when
from penstock.pipelines.plan.checks import named, not_negative, one_of, require
from penstock.pipelines.plan.columns import columns_read
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.sinks import PaneLog
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Types
from penstock.pipelines.plan.triggers import (
    AfterEach,
    Default,
    Trigger,
    can_finish,
    parts,
)
from penstock.pipelines.plan.types import check_condition, check_distance, check_key, check_numbers
from penstock.pipelines.plan.used import (
    conditions,
    distances,
    refuse_other_names,
    refuse_two_types,
    used_fields,
)
from penstock.pipelines.plan.windows import (
    PairWindow,
    SameWindows,
    by_processing_time,
    in_order,
)

DEEPEST = 50
"""Triggers one inside the other: more are no definition, but a program that has run wild."""


def check(plan: Plan) -> Plan:
    """Return the plan, or raise the first `DefinitionError` in it, located at the pipeline's name."""
    try:
        check_graph(plan)
        for stage in plan.stages:
            check_stage(plan, stage)
            check_turns(stage.trigger)
    except DefinitionError as problem:
        raise problem.located(problem.where or f"pipeline {plan.name}") from None
    return plan


def check_graph(plan: Plan) -> None:
    """Refuse inputs that do not exist, names used twice, and a pipeline that reads or writes nothing."""
    named(plan.name, "name")
    require(len(plan.sources) > 0, "read", "nothing is read", "Begin with read(...)")
    require(len(plan.stages) > 0, "aggregate", "nothing is computed", "Say what with aggregate(...)")
    known: list[str] = [source.name for source in plan.sources]
    for stage in plan.stages:
        for name in stage.inputs:
            require(name in known, "inputs", name, f"Name what comes before it: {', '.join(known)}")
        known.append(stage.name)
    twice = next((name for name in known if known.count(name) > 1), "")
    require(not twice, "name", f"{twice!r} is used twice", "Give each source and stage its own name")
    fed = {name for stage in plan.stages for name in stage.inputs}
    for stage in plan.stages:
        used = stage.name in fed or len(stage.sinks) > 0 or len(stage.topics) > 0
        require(used, "write", f"nobody reads what {stage.name} says", "Say where it goes with write(...)")
    check_ends(plan)


def check_stage(plan: Plan, stage: Stage) -> None:
    """Refuse answers to the four questions that contradict each other."""
    one_of(stage.accumulation, ("discarding", "accumulating", "retracting"), "refine")
    one_of(stage.on_time_pane, ("always", "when_changed"), "on_time_pane")
    one_of(stage.final_pane, ("never", "when_changed", "always"), "final_pane")
    not_negative(stage.lateness, "lateness")
    check_alike(plan, stage)
    check_names(stage)
    check_computed(stage)
    check_inputs(plan, stage)
    check_columns(plan, stage)
    check_time(plan, stage)
    check_lookups(plan, stage)
    if plan.feeding(stage):
        check_later(plan, stage)
    else:
        fix = "Say where: only a stage over another one has windows to go on with"
        require(not isinstance(stage.window, SameWindows), "window", "same_windows() over records", fix)
    check_join(plan, stage)
    if not in_order(stage.window):
        check_trigger(stage)
        check_when(stage)
    elif not isinstance(stage.window, PairWindow):
        check_order_window(stage)
    for output in stage.aggregates:
        ordered = not needs_arrival_order(output.of) or len(stage.inputs) == 1
        fix = "Write order='event_time': records of several inputs have no order of arrival among them"
        require(ordered, f"aggregate.{output.name}", "needs the order of arrival", fix)


def check_computed(stage: Stage) -> None:
    """Refuse a stage that says not what it makes, or says it twice."""
    computed = len(stage.aggregates) > 0
    if isinstance(stage.window, Remembering):
        require(not computed, "aggregate", "given beside remember", "Leave one of the two out")
        logs = all(isinstance(sink, PaneLog) for sink in stage.sinks)
        fix = "Write mode='log': each row stands by itself, and no later one takes its place"
        require(logs, "write.mode", "a table of newest values for rows of a function", fix)
        check_outputs(stage, stage.window)
        return
    for sink in stage.sinks:
        parted = isinstance(sink, PaneLog) and sink.output is not None
        fix = "Leave output out: a function with a memory may have several"
        require(not parted, "write.output", f"there is no other output of {stage.name}", fix)
    if not isinstance(stage.window, Relayed):
        require(computed, "aggregate", "nothing is computed", "Write aggregate(readings=count())")


def check_columns(plan: Plan, stage: Stage) -> None:
    """Refuse a field that is in no input, where this is known without running a step."""
    feeding = plan.feeding(stage)
    known = columns_read(stage, feeding, plan.read_by(stage))
    if feeding and None not in known.values():
        # Panes of several stages are read as one: what only some of them have is null in the others.
        shown: Types = dict.fromkeys(name for columns in known.values() for name in columns or ())
        known = known if restricted(stage) else dict.fromkeys(known, shown)
    for name, columns in known.items():
        for field, used in used_fields(stage, name) if columns is not None else ():
            if feeding:
                who = name if restricted(stage) else ", ".join(each.name for each in feeding)
                shows = f"{who} shows: {', '.join(sorted(columns or ()))}"
                found = f"{used!r} is no column of what {stage.name} reads"
                require(used in (columns or ()), field, found, shows)
            else:
                has = f"{name} has: {', '.join(sorted(columns or ()))}"
                require(used in (columns or ()), field, f"{used!r} is no field of {name}", has)
        check_key(stage.key, columns or {})
        for field in distances(stage.window):
            check_distance(field, columns or {})
        for place, predicate in conditions(stage, name):
            check_condition(predicate, columns or {}, place)
        for output in stage.aggregates:
            check_numbers(output, (columns or {}) if of_input(output.of) in (None, name) else {})
    refuse_two_types(stage, known, panes=bool(feeding))


def of_input(of: Aggregate) -> str | None:
    """Return the input that an aggregate is over, where it is over one alone."""
    return of.input if isinstance(of, OfInput | Members) else None


def restricted(stage: Stage) -> bool:
    """Tell whether some aggregate is over one input alone."""
    return any(isinstance(output.of, OfInput | Members) for output in stage.aggregates)


def check_inputs(plan: Plan, stage: Stage) -> None:
    """Refuse what speaks of an input that the stage does not read, or that its records do not tell."""
    refuse_other_names(stage, plan.read_by(stage))
    for output in stage.aggregates:
        if isinstance(output.of, OfInput | Members):
            fix = f"{stage.name} reads: {', '.join(stage.inputs)}"
            require(output.of.input in stage.inputs, f"aggregate.{output.name}", output.of.input, fix)


def check_order_window(stage: Stage) -> None:
    """Refuse what only windows of time have."""
    fix = "Leave it out: an order window shows what it holds by its own policy, and nothing is late"
    require(stage.trigger == Default(), "trigger", "given for an order window", fix)
    timeless = stage.lateness == 0 or isinstance(stage.window, Relayed)
    require(timeless, "lateness", "given for an order window", fix)
    require(stage.final_pane == "never", "final_pane", "given for an order window", fix)
    single = len(stage.inputs) == 1
    require(
        single,
        "window",
        "an order window over several inputs",
        "Read one input: between several there is no order",
    )


def check_trigger(stage: Stage) -> None:
    """Refuse a trigger that loses data silently, or that no program could follow."""
    trigger = stage.trigger
    levels = depth(trigger)
    fix = f"Give {DEEPEST} at most"
    require(levels <= DEEPEST, "trigger", f"{levels} triggers one inside the other", fix)
    fix = (
        "Wrap it in repeatedly(...), or declare may_finish=True: then what comes later goes to the late table"
    )
    require(stage.may_finish or not can_finish(trigger), "trigger", "it can finish", fix)
    if by_processing_time(stage.window):
        fix = "Leave it out: nothing is late for a window of processing time"
        require(stage.lateness == 0, "lateness", f"{stage.lateness} ms", fix)


def check_turns(trigger: Trigger) -> None:
    """Refuse a part that can never have its turn."""
    for each in (trigger, *inner(trigger)):
        for part in each.of[:-1] if isinstance(each, AfterEach) else ():
            fix = "Only the last part of after_each may go on for ever"
            require(can_finish(part), "trigger.after_each", "a part never finishes", fix)


def depth(trigger: Trigger) -> int:
    """Return how many triggers are one inside the other at most."""
    levels = 0
    level: tuple[Trigger, ...] = (trigger,)
    while level:
        levels += 1
        level = tuple(part for each in level for part in parts(each))
    return levels


def inner(trigger: Trigger) -> Iterable[Trigger]:
    """Yield all triggers inside this one."""
    for part in parts(trigger):
        yield part
        yield from inner(part)
