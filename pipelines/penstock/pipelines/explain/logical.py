"""The logical plan: what is done, in the order in which it is done, as a tree from the tables up to the inputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.pipelines.explain import words
from penstock.pipelines.plan import (
    Apply,
    Files,
    Join,
    Keep,
    Lookup,
    OverArrow,
    PaneLog,
    PerRow,
    Plan,
    Relayed,
    Remembering,
    Select,
    Sink,
    Source,
    Sql,
    Stage,
    Step,
    predicate_sql,
)

SINKS = {
    "PaneLog": "every pane, appended to",
    "FinalPanes": "final panes, appended to",
    "LatestValues": "the latest value per key and window in",
    "CompleteTable": "the whole result, written anew, in",
}


@dataclass(frozen=True)
class Node:
    """One thing that is done, to what comes out of others."""

    does: str
    to: tuple["Node", ...] = ()

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the tree as lines."""
        yield "   " * max(depth - 1, 0) + ("└─ " if depth else "") + self.does
        for node in self.to:
            yield from node.lines(depth + 1)


def logical(plan: Plan) -> tuple[Node, ...]:
    """Return a tree for each table that is written; a stage that several read is drawn once."""
    made: dict[str, Node] = {source.name: read(source) for source in plan.sources}
    written: list[Node] = []
    for stage in plan.stages:
        made[stage.name] = computed(stage, tuple(made[name] for name in stage.inputs))
        told = Node(f"changes of {stage.name}, as above")
        for item in stage.sinks:
            written.append(Node(sink(item), (made[stage.name],)))
            made[stage.name] = told
        for topic in stage.topics:
            written.append(
                Node(f"publish every pane, with its change, to topic {topic.topic}", (made[stage.name],))
            )
            made[stage.name] = told
        several = sum(stage.name in other.inputs for other in plan.stages) > 1
        if several and not stage.sinks:
            written.append(Node(f"{stage.name}, read by several stages", (made[stage.name],)))
            made[stage.name] = told
    return tuple(written)


def computed(stage: Stage, inputs: tuple[Node, ...]) -> Node:
    """Return the node of a stage, over its steps, over its inputs."""
    own = tuple(above(stage.steps_of(name), node) for name, node in zip(stage.inputs, inputs, strict=True))
    if stage.join is not None:
        return joined(stage, stage.join, own)
    below = own if len(own) == 1 else (Node("union", own),)
    for step in stage.steps:
        below = (Node(stepped(step), below),)
    key = words.joined(list(stage.key)) if stage.key else "nothing"
    if isinstance(stage.window, Relayed):
        return Node("take published panes for the changes that they are", below)
    if isinstance(stage.window, Remembering):
        if stage.window.passes:
            return Node("each record as a row", below)
        order = "event time" if stage.window.by_time else "arrival"
        by_key = Node(f"group by {key}, in the order of {order}", below)
        many = "all keys at once " if stage.window.vectorised else ""
        return Node(f"hand {many}to {stage.window.function.name}, which remembers", (by_key,))
    columns = ", ".join(output.name for output in stage.aggregates)
    grouped = Node(f"group by {key} in {words.window(stage.window)}", below)
    return Node(f"aggregate {columns} ({stage.accumulation})", (grouped,))


def above(steps: Sequence[Step], node: Node) -> Node:
    """Return a node with steps above it."""
    for step in steps:
        node = Node(stepped(step), (node,))
    return node


def joined(stage: Stage, join: Join, inputs: tuple[Node, ...]) -> Node:
    """Return the node of a join."""
    key = words.joined(list(stage.key)) if stage.key else "nothing"
    columns = ", ".join(column.name for column in join.columns)
    grouped = Node(f"group each by {key} in {words.window(stage.window)}", inputs)
    return Node(
        f"{join.kind} join of {join.left} and {join.right}: {columns} ({stage.accumulation})", (grouped,)
    )


def read(source: Source) -> Node:
    """Return the node of an input, and of what is asked of its records."""
    origin = source.origin
    place = (
        f"{origin.format} files at {origin.path}" if isinstance(origin, Files) else f"topic {origin.topic}"
    )
    rule = source.watermark
    bound = words.duration(rule.bound)
    node = Node(
        f"read {place}; event time {source.event_time}, watermark {bound} behind the newest{rest(source)}"
    )
    if source.deduplication is None:
        return node
    ids = words.joined(list(source.deduplication.id))
    return Node(f"set aside repeats of {ids} within {words.duration(source.deduplication.horizon)}", (node,))


def rest(source: Source) -> str:
    """Say what else the watermark does."""
    rule = source.watermark
    said = ""
    if rule.idle_after is not None:
        moving = ", following the clock when all are" if rule.advance_when_idle else ""
        said += f", idle after {words.duration(rule.idle_after)}{moving}"
    if rule.max_ahead is not None:
        fate = "quarantined" if rule.ahead == "quarantine" else "accepted, but moves nothing"
        said += f"; what is more than {words.duration(rule.max_ahead)} ahead of the clock is {fate}"
    return said


def stepped(step: Step) -> str:
    """Say a step."""
    match step:
        case Apply(function):
            return f"apply {function.name}"
        case Sql(text):
            return f"sql {' '.join(text.split())}"
        case OverArrow(function):
            return f"apply {function.name} over Arrow"
        case Lookup(table, on, columns):
            wanted = words.joined([column.name for column in columns])
            return f"look up {wanted} in {table} by {words.joined(list(on))}, at the version of the batch"
        case Keep(condition):
            return f"keep what meets {predicate_sql(condition)}"
        case Select(columns):
            named = [new if new == old else f"{old} as {new}" for new, old in columns]
            return f"select {words.joined(named)}"
        case PerRow(function):
            return f"{step.word} {function.name}"


def sink(item: Sink) -> str:
    """Say a table."""
    return f"write {taken(item)} {item.table}"


def taken(item: Sink) -> str:
    """Say what a table takes, and how."""
    if isinstance(item, PaneLog) and item.output is not None:
        return f"what is sent to {item.output}, appended to"
    return SINKS[type(item).__name__]
