"""A plan as a graph in Mermaid's words, which GitHub and many editors draw: inputs, stages, tables, in one pass.

What is inside the frame runs in one batch, from the records to the commits: no topic and no table lies between.
"""

from collections.abc import Iterator, Sequence

from penstock.pipelines.explain import words
from penstock.pipelines.explain.elements import Part
from penstock.pipelines.explain.logical import stepped, taken
from penstock.pipelines.plan import Files, Plan, Relayed, Remembering, Sink, Source, Stage

INDENT = "    "
SPELT = str.maketrans({'"': "'", "#": "#35;", "<": "#lt;", ">": "#gt;"})


def mermaid(plan: Plan, running: Sequence[Part] = ()) -> str:
    """Return the graph of a plan, and beside it, where it is known, what runs it: tiers, tasks and shuffles."""
    return "\n".join([*lines(plan), *running_lines(running)]) + "\n"


def running_lines(running: Sequence[Part]) -> Iterator[str]:
    """Yield the parts of what runs a plan, tier by tier, each with its tasks; a shuffle is a part of its own."""
    numbered = list(enumerate(running))
    for tier in dict.fromkeys(part.tier for part in running):
        yield f"{INDENT}subgraph {tier} [in the {tier}]"
        for number, part in numbered:
            if part.tier == tier:
                tasks = f"{part.tasks} {'task' if part.tasks == 1 else 'tasks'}"
                yield f"{INDENT * 2}r{number}[{text(part.part, tasks)}]"
        yield f"{INDENT}end"


def lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of the graph."""
    everything = [*(source.name for source in plan.sources), *(stage.name for stage in plan.stages)]
    names = {name: f"n{number}" for number, name in enumerate(everything)}
    yield "flowchart LR"
    for source in plan.sources:
        yield f"{INDENT}{names[source.name]}[({text(read(source))})]"
    yield f"{INDENT}subgraph batch [one batch]"
    for stage in plan.stages:
        yield f"{INDENT * 2}{names[stage.name]}[{text(*computed(stage))}]"
    yield f"{INDENT}end"
    for stage in plan.stages:
        later = bool(plan.feeding(stage))
        for name in stage.inputs:
            arrow = "-->|changes|" if later else "-->|records|"
            yield f"{INDENT}{names[name]} {arrow} {names[stage.name]}"
        for number, sink in enumerate(stage.sinks):
            table = f"{names[stage.name]}t{number}"
            yield f"{INDENT}{names[stage.name]} --> {table}[[{text(written(sink))}]]"
        for number, topic in enumerate(stage.topics):
            said = text(f"topic {topic.topic}: every pane, with its change")
            yield f"{INDENT}{names[stage.name]} --> {names[stage.name]}p{number}[({said})]"


def text(*parts: str) -> str:
    """Quote words for a node, each part on a line of its own; what Mermaid or HTML takes for theirs is spelt."""
    return '"' + "<br>".join(part.translate(SPELT) for part in parts) + '"'


def read(source: Source) -> str:
    """Say an input."""
    return source.origin.path if isinstance(source.origin, Files) else f"topic {source.origin.topic}"


def computed(stage: Stage) -> Iterator[str]:
    """Say a stage: its name, its steps, its key and windows, and what is computed."""
    yield stage.name
    yield from (stepped(step) for each in stage.prepared for step in each.steps)
    yield from (stepped(step) for step in stage.steps)
    key = f"by {words.joined(list(stage.key))}" if stage.key else "all together"
    if isinstance(stage.window, Relayed):
        yield "published panes, taken for the changes that they are"
        return
    if isinstance(stage.window, Remembering) and stage.window.passes:
        yield "each record, as a row"
        return
    if isinstance(stage.window, Remembering):
        order = "order of event time" if stage.window.by_time else "order"
        yield f"{key}, in {order}: {stage.window.function.name} remembers"
        return
    yield f"{key}, in {words.window(stage.window)}"
    if stage.join is not None:
        yield f"{stage.join.kind} join ({stage.accumulation})"
        return
    yield ", ".join(output.name for output in stage.aggregates) + f" ({stage.accumulation})"


def written(sink: Sink) -> str:
    """Say a table."""
    return f"{sink.table}: {taken(sink).removesuffix(' in').removesuffix(' to').removesuffix(',')}"
