"""Checks between the parts of a plan. Each part validates itself when it is created."""

from penstock.engine.definition.argument_checks import (
    require,
    require_name,
    require_non_negative,
    require_one_of,
)
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.field_usage import refuse_renamed_inputs
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.validation.column_names import check_column_names
from penstock.engine.plan.validation.event_time import check_event_time
from penstock.engine.plan.validation.fields import check_fields
from penstock.engine.plan.validation.joins import check_join
from penstock.engine.plan.validation.lookups import check_lookups
from penstock.engine.plan.validation.pane_timing import check_pane_timing
from penstock.engine.plan.validation.sinks import check_side_outputs, check_sinks
from penstock.engine.plan.validation.stage_chain import check_downstream_stage, check_inputs_uniform
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.join_window import JoinWindow

MAX_TRIGGER_DEPTH = 50
"""The deepest nesting of triggers, against runaway programs."""


def validate_plan(plan: Plan) -> Plan:
    """Return the plan. Raises DefinitionError, with all problems of all stages, located at the pipeline's name."""
    try:
        check_graph(plan)
        collector = ProblemCollector()
        for stage in plan.stages:
            with collector.collect():
                check_stage(plan, stage)
                stage.trigger.refuse_unreachable_parts()
        collector.raise_problems()
    except DefinitionError as problem:
        raise problem.with_location(problem.location or f"pipeline {plan.name}") from None
    return plan


def check_graph(plan: Plan) -> None:
    """Refuse inputs that do not exist, names used twice, and a pipeline that reads or writes nothing."""
    require_name(plan.name, "name")
    require(len(plan.sources) > 0, "read", "nothing is read", "Start with read(...)")
    require(len(plan.stages) > 0, "aggregate", "nothing is computed", "Add aggregate(...)")
    known_names: list[str] = [source.name for source in plan.sources]
    for stage in plan.stages:
        for name in stage.inputs:
            require(
                name in known_names,
                "inputs",
                name,
                f"Name a source or an upstream stage: {', '.join(known_names)}",
            )
        known_names.append(stage.name)
    duplicate_name = next((name for name in known_names if known_names.count(name) > 1), "")
    require(
        not duplicate_name,
        "name",
        f"{duplicate_name!r} is used twice",
        "Give each source and stage a unique name",
    )
    read_names = {name for stage in plan.stages for name in stage.inputs}
    for stage in plan.stages:
        is_used = stage.name in read_names or len(stage.all_sinks) > 0
        fix = f"Write it to a table, as in write({stage.name!r})"
        require(is_used, "write", f"the result of {stage.name} is not used", fix)
    check_sinks(plan)


def check_stage(plan: Plan, stage: Stage) -> None:
    """Refuse a stage whose options contradict each other."""
    collector = ProblemCollector()
    for check in (check_options, check_column_names, check_stage_results):
        with collector.collect():
            check(stage)
    for check_in_plan in (check_inputs_uniform, check_input_names, check_fields):
        with collector.collect():
            check_in_plan(plan, stage)
    if not stage.window.is_record_ordered:
        with collector.collect():
            check_trigger(stage)
    collector.raise_problems()
    check_event_time(plan, stage)
    check_lookups(plan, stage)
    if plan.upstream_of(stage):
        check_downstream_stage(plan, stage)
    else:
        fix = "Set a window: only a stage over another stage can reuse its windows"
        require(not stage.window.reuses_upstream_windows, "window", "same_windows() over records", fix)
    check_join(plan, stage)
    if not stage.window.is_record_ordered:
        check_lateness(stage)
        check_pane_timing(stage)
    elif not isinstance(stage.window, JoinWindow):
        check_order_window(stage)
    for output in stage.aggregates:
        has_defined_order = not output.aggregate.needs_arrival_order or len(stage.inputs) == 1
        fix = "Write order='event_time': several inputs have no common arrival order"
        require(has_defined_order, f"aggregate.{output.name}", "needs the arrival order", fix)


def check_options(stage: Stage) -> None:
    """Refuse options of the stage that are not in their lists."""
    require_one_of(stage.accumulation, ("discarding", "accumulating", "retracting"), "accumulation")
    require_one_of(stage.on_time_pane, ("always", "when_changed"), "on_time_pane")
    require_one_of(stage.final_pane, ("never", "when_changed", "always"), "final_pane")
    require_non_negative(stage.lateness, "lateness")


def check_stage_results(stage: Stage) -> None:
    """Refuse a stage without a result, or with two kinds of results."""
    has_aggregates = len(stage.aggregates) > 0
    if isinstance(stage.window, StatefulFunction):
        require(not has_aggregates, "aggregate", "together with stateful", "Remove one of them")
        are_logs = all(sink.content is PaneContent.ALL for sink in stage.sinks)
        fix = "Write mode='log': each row of a function is final and replaces no other row"
        require(are_logs, "write.mode", "a table of latest values for rows of a stateful function", fix)
        check_side_outputs(stage, stage.window)
        return
    for sink in stage.sinks:
        fix = "Remove output: only stateful functions have side outputs"
        require(sink.output is None, "write.output", f"{stage.name} has no side outputs", fix)
    if not isinstance(stage.window, ChangelogWindows):
        require(has_aggregates, "aggregate", "nothing is computed", "Add aggregate(readings=count())")


def check_input_names(plan: Plan, stage: Stage) -> None:
    """Refuse aggregates over inputs that the stage does not read or cannot distinguish."""
    refuse_renamed_inputs(stage, plan.sources_of(stage))
    for output in stage.aggregates:
        restricted_input = output.aggregate.restricted_input
        fix = f"{stage.name} reads: {', '.join(stage.inputs)}"
        is_known = restricted_input is None or restricted_input in stage.inputs
        require(is_known, f"aggregate.{output.name}", restricted_input, fix)


def check_order_window(stage: Stage) -> None:
    """Refuse options of time windows for an order window."""
    fix = "Remove it: an order window emits by its own policy, and no record is late"
    require(stage.has_default_trigger, "trigger", "set for an order window", fix)
    has_no_lateness = stage.lateness == 0 or isinstance(stage.window, ChangelogWindows)
    require(has_no_lateness, "lateness", "set for an order window", fix)
    require(stage.final_pane == "never", "final_pane", "set for an order window", fix)
    has_one_input = len(stage.inputs) == 1
    require(
        has_one_input,
        "window",
        "an order window over several inputs",
        "Read one input: several inputs have no common order",
    )


def check_trigger(stage: Stage) -> None:
    """Refuse a trigger that loses data silently or is nested too deeply."""
    trigger = stage.trigger
    levels = trigger_depth(trigger)
    fix = f"Nest at most {MAX_TRIGGER_DEPTH} triggers"
    require(levels <= MAX_TRIGGER_DEPTH, "trigger", f"{levels} nested triggers", fix)
    fix = "Wrap it in repeatedly(...), or set may_finish=True: later records then go to the late table"
    require(
        stage.may_finish or not trigger.can_finish,
        "trigger",
        "it fires a last time, and would lose later records",
        fix,
    )


def check_lateness(stage: Stage) -> None:
    """Refuse an allowed lateness that has no effect."""
    if stage.window.uses_processing_time:
        fix = "Remove it: no record is late for a processing-time window"
        require(stage.lateness == 0, "lateness", f"{stage.lateness} ms", fix)


def trigger_depth(trigger: Trigger) -> int:
    """Return the nesting depth of a trigger."""
    levels = 0
    level: tuple[Trigger, ...] = (trigger,)
    while level:
        levels += 1
        level = tuple(part for parent in level for part in parent.parts)
    return levels
