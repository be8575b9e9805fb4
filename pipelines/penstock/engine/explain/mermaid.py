"""A plan as a graph in Mermaid's words, which GitHub and many editors draw: inputs, stages, tables, in one pass.

What is inside the frame runs in one batch, from the records to the commits: no topic and no table lies between.
"""

from collections.abc import Iterator, Sequence

from penstock.engine.explain import phrases
from penstock.engine.explain.logical_plan import describe_sink_mode, describe_step
from penstock.engine.explain.parallelism import PlacedOperator
from penstock.engine.plan import ChangelogWindows, FileOrigin, Plan, PlanSource, Sink, Stage, StatefulFunction

INDENT = "    "
MERMAID_ESCAPES = str.maketrans({'"': "'", "#": "#35;", "<": "#lt;", ">": "#gt;"})


def render_mermaid(plan: Plan, operators: Sequence[PlacedOperator] = ()) -> str:
    """Return the graph of a plan, and beside it, where it is known, what runs it: tiers, tasks and shuffles."""
    return "\n".join([*iter_graph_lines(plan), *iter_operator_lines(operators)]) + "\n"


def iter_operator_lines(operators: Sequence[PlacedOperator]) -> Iterator[str]:
    """Yield the parts of what runs a plan, tier by tier, each with its tasks; a shuffle is a part of its own."""
    numbered_operators = list(enumerate(operators))
    for tier in dict.fromkeys(operator.tier for operator in operators):
        yield f"{INDENT}subgraph {tier} [in the {tier}]"
        for number, operator in numbered_operators:
            if operator.tier == tier:
                tasks = f"{operator.tasks} {'task' if operator.tasks == 1 else 'tasks'}"
                yield f"{INDENT * 2}r{number}[{node_label(operator.part, tasks)}]"
        yield f"{INDENT}end"


def iter_graph_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of the graph."""
    node_names = [*(source.name for source in plan.sources), *(stage.name for stage in plan.stages)]
    node_ids = {name: f"n{number}" for number, name in enumerate(node_names)}
    yield "flowchart LR"
    for source in plan.sources:
        yield f"{INDENT}{node_ids[source.name]}[({node_label(source_label(source))})]"
    yield f"{INDENT}subgraph batch [one batch]"
    for stage in plan.stages:
        yield f"{INDENT * 2}{node_ids[stage.name]}[{node_label(*iter_stage_labels(stage))}]"
    yield f"{INDENT}end"
    for stage in plan.stages:
        reads_panes = bool(plan.upstream_of(stage))
        for name in stage.inputs:
            arrow = "-->|changes|" if reads_panes else "-->|records|"
            yield f"{INDENT}{node_ids[name]} {arrow} {node_ids[stage.name]}"
        for number, sink in enumerate(stage.sinks):
            table_id = f"{node_ids[stage.name]}t{number}"
            yield f"{INDENT}{node_ids[stage.name]} --> {table_id}[[{node_label(sink_label(sink))}]]"
        for number, topic in enumerate(stage.topics):
            topic_label = node_label(f"topic {topic.topic}: every pane, with its change")
            yield f"{INDENT}{node_ids[stage.name]} --> {node_ids[stage.name]}p{number}[({topic_label})]"


def node_label(*label_lines: str) -> str:
    """Quote words for a node, each part on a line of its own; what Mermaid or HTML takes for theirs is spelt."""
    return '"' + "<br>".join(label_line.translate(MERMAID_ESCAPES) for label_line in label_lines) + '"'


def source_label(source: PlanSource) -> str:
    """Say an input."""
    return source.origin.path if isinstance(source.origin, FileOrigin) else f"topic {source.origin.topic}"


def iter_stage_labels(stage: Stage) -> Iterator[str]:
    """Say a stage: its name, its steps, its key and windows, and what is computed."""
    yield stage.name
    yield from (describe_step(step) for prepared_input in stage.input_steps for step in prepared_input.steps)
    yield from (describe_step(step) for step in stage.steps)
    key = f"by {phrases.join_phrases(list(stage.key))}" if stage.key else "all together"
    if isinstance(stage.window, ChangelogWindows):
        yield "published panes, taken for the changes that they are"
        return
    if isinstance(stage.window, StatefulFunction) and stage.window.is_pass_through:
        yield "each record, as a row"
        return
    if isinstance(stage.window, StatefulFunction):
        order = "order of event time" if stage.window.is_event_time_ordered else "order"
        yield f"{key}, in {order}: {stage.window.function.name} remembers"
        return
    yield f"{key}, in {phrases.describe_window(stage.window)}"
    if stage.join is not None:
        yield f"{stage.join.kind} join ({stage.accumulation})"
        return
    yield ", ".join(output.name for output in stage.aggregates) + f" ({stage.accumulation})"


def sink_label(sink: Sink) -> str:
    """Say a table."""
    return (
        f"{sink.table}: {describe_sink_mode(sink).removesuffix(' in').removesuffix(' to').removesuffix(',')}"
    )
