"""The logical plan: a tree of operations, from each table down to its inputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.definition.phrases import format_duration, join_phrases
from penstock.engine.definition.predicates import predicate_sql
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.joins import Join
from penstock.engine.plan.sources import FileOrigin, PlanSource, SkewOrigin, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import (
    ApplyStep,
    ArrowStep,
    FilterStep,
    LookupStep,
    RowFunctionStep,
    SelectStep,
    SqlStep,
    Step,
)


@dataclass(frozen=True)
class LogicalNode:
    """An operation and the nodes that it reads."""

    operation: str
    inputs: tuple["LogicalNode", ...] = ()

    def iter_lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the tree as lines."""
        yield "   " * max(depth - 1, 0) + ("└─ " if depth else "") + self.operation
        for node in self.inputs:
            yield from node.iter_lines(depth + 1)


def build_logical_plan(plan: Plan) -> tuple[LogicalNode, ...]:
    """Return a tree for each table and topic that is written. A stage with several readers appears once."""
    nodes_by_name: dict[str, LogicalNode] = {source.name: source_node(source) for source in plan.sources}
    output_nodes: list[LogicalNode] = []
    for stage in plan.stages:
        nodes_by_name[stage.name] = stage_node(stage, tuple(nodes_by_name[name] for name in stage.inputs))
        back_reference = LogicalNode(f"changes of {stage.name} (see above)")
        for sink in stage.all_sinks:
            output_nodes.append(LogicalNode(sink.describe(), (nodes_by_name[stage.name],)))
            nodes_by_name[stage.name] = back_reference
        is_shared = sum(stage.name in other.inputs for other in plan.stages) > 1
        if is_shared and not stage.sinks:
            output_nodes.append(
                LogicalNode(f"{stage.name}, read by several stages", (nodes_by_name[stage.name],))
            )
            nodes_by_name[stage.name] = back_reference
    return tuple(output_nodes)


def stage_node(stage: Stage, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
    """Return the node of a stage with its steps and inputs below it."""
    input_nodes = tuple(
        add_steps(stage.steps_of_input(name), node) for name, node in zip(stage.inputs, inputs, strict=True)
    )
    if stage.join is not None:
        return join_node(stage, stage.join, input_nodes)
    nodes_below = input_nodes if len(input_nodes) == 1 else (LogicalNode("union", input_nodes),)
    for step in stage.steps:
        nodes_below = (LogicalNode(describe_step(step), nodes_below),)
    key = join_phrases(list(stage.key)) if stage.key else "nothing"
    if isinstance(stage.window, ChangelogWindows):
        return LogicalNode("read panes as changes", nodes_below)
    if isinstance(stage.window, StatefulFunction):
        if stage.window.is_pass_through:
            return LogicalNode("emit each record as a row", nodes_below)
        order = "event-time" if stage.window.is_event_time_ordered else "arrival"
        grouped_node = LogicalNode(f"group by {key}, in {order} order", nodes_below)
        batch_wide = ", for all keys of a batch in one call" if stage.window.vectorized else ""
        return LogicalNode(
            f"apply stateful function {stage.window.function.name}{batch_wide}", (grouped_node,)
        )
    columns = ", ".join(output.name for output in stage.aggregates)
    windowed_node = LogicalNode(f"group by {key} in {stage.window.describe()}", nodes_below)
    return LogicalNode(f"aggregate {columns} ({stage.accumulation})", (windowed_node,))


def add_steps(steps: Sequence[Step], node: LogicalNode) -> LogicalNode:
    """Return the node with the steps applied to it."""
    for step in steps:
        node = LogicalNode(describe_step(step), (node,))
    return node


def join_node(stage: Stage, join: Join, inputs: tuple[LogicalNode, ...]) -> LogicalNode:
    """Return the node of a join."""
    key = join_phrases(list(stage.key)) if stage.key else "nothing"
    columns = ", ".join(column.name for column in join.columns)
    grouped_node = LogicalNode(f"group both by {key} in {stage.window.describe()}", inputs)
    return LogicalNode(
        f"{join.kind} join of {join.left} and {join.right}: {columns} ({stage.accumulation})", (grouped_node,)
    )


def source_node(source: PlanSource) -> LogicalNode:
    """Return the node of a source, with its watermark and deduplication."""
    origin = source.origin
    location = (
        f"{origin.format} files at {origin.path}"
        if isinstance(origin, FileOrigin)
        else f"topic {origin.topic}{_describe_deletes(origin)}"
    )
    watermark_rule = source.watermark
    out_of_orderness = format_duration(watermark_rule.max_out_of_orderness)
    node = LogicalNode(
        f"read {location}; event time {source.event_time}, "
        f"watermark {out_of_orderness} behind the newest event time{describe_watermark_options(source)}"
    )
    if source.deduplication is None:
        return node
    ids = join_phrases(list(source.deduplication.by))
    return LogicalNode(f"deduplicate by {ids} within {format_duration(source.deduplication.within)}", (node,))


def _describe_deletes(origin: TopicOrigin) -> str:
    match origin.deletes:
        case "keep":
            return ", with events of deleted rows"
        case "ignore":
            return ", without events of deleted rows"
        case None:
            return ""


def describe_watermark_options(source: PlanSource) -> str:
    """Describe the idle timeout and the limit on future event times."""
    watermark_rule = source.watermark
    description = ""
    if watermark_rule.idle_after is not None:
        advance_note = (
            ", following the clock while all partitions are idle" if watermark_rule.advance_when_idle else ""
        )
        description += f", idle after {format_duration(watermark_rule.idle_after)}{advance_note}"
    return description + describe_future_skew(watermark_rule)


SKEW_ORIGIN_PHRASES: Mapping[SkewOrigin, str] = {
    "read": " (max_future_skew of the pipeline)",
    "contract": " (max_future_skew of the contract)",
    "setting": " (max_future_skew of the settings)",
}


def describe_future_skew(watermark_rule: WatermarkStrategy) -> str:
    """Describe the limit on future event times, and where it comes from."""
    origin = SKEW_ORIGIN_PHRASES.get(watermark_rule.skew_origin, "")
    if watermark_rule.max_future_skew is None:
        return f"; any future event time is accepted{origin}" if origin else ""
    skew_action = (
        "quarantined"
        if watermark_rule.future_records == "quarantine"
        else "accepted, but do not advance the watermark"
    )
    max_future_skew = format_duration(watermark_rule.max_future_skew)
    return f"; records more than {max_future_skew} ahead of the clock are {skew_action}{origin}"


def _describe_result(step: ApplyStep | ArrowStep) -> str:
    """Say which columns a function returns, or that nothing after it can be checked before the start."""
    if not step.returns:
        return "; its columns are unknown until the stream starts, declare them with returns"
    return f", which returns {join_phrases([column.name for column in step.returns])}"


def describe_step(step: Step) -> str:
    """Describe a step."""
    match step:
        case ApplyStep(function):
            return f"apply {function.name}{_describe_result(step)}"
        case SqlStep(text):
            return f"sql {' '.join(text.split())}"
        case ArrowStep(function):
            return f"apply {function.name} over Arrow{_describe_result(step)}"
        case LookupStep(table, on, columns):
            lookup_columns = join_phrases([column.name for column in columns])
            lookup_key = join_phrases(list(on))
            return f"look up {lookup_columns} in {table} by {lookup_key}, at the table version of the batch"
        case FilterStep(condition):
            return f"filter {predicate_sql(condition)}"
        case SelectStep(columns):
            selected_columns = [new if new == old else f"{old} as {new}" for new, old in columns]
            return f"select {join_phrases(selected_columns)}"
        case RowFunctionStep(function):
            return f"{step.keyword} {function.name}"
