"""A plan as a Mermaid flowchart: inputs, stages, tables and topics.

GitHub and many editors draw Mermaid. Everything inside the frame runs in one batch, from records to
commits, without an intermediate topic or table.
"""

from collections.abc import Iterator, Sequence

from penstock.engine.definition.phrases import join_phrases
from penstock.engine.explain.logical_plan import describe_step
from penstock.engine.explain.parallelism import PlacedOperator
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.sources import FileOrigin, PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction

INDENT = "    "
MERMAID_ESCAPES = str.maketrans({'"': "'", "#": "#35;", "<": "#lt;", ">": "#gt;"})


def render_mermaid(plan: Plan, operators: Sequence[PlacedOperator] = ()) -> str:
    """Return the flowchart of a plan, followed by its physical operators if they are given."""
    return "\n".join([*iter_graph_lines(plan), *iter_operator_lines(operators)]) + "\n"


def iter_operator_lines(operators: Sequence[PlacedOperator]) -> Iterator[str]:
    """Yield the physical operators by tier, each with its number of tasks. A shuffle is an operator of its own."""
    numbered_operators = list(enumerate(operators))
    for tier in dict.fromkeys(operator.tier for operator in operators):
        yield f"{INDENT}subgraph {tier} [in the {tier}]"
        for number, operator in numbered_operators:
            if operator.tier == tier:
                tasks = f"{operator.tasks} {'task' if operator.tasks == 1 else 'tasks'}"
                yield f"{INDENT * 2}r{number}[{node_label(operator.part, tasks)}]"
        yield f"{INDENT}end"


def iter_graph_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of the flowchart."""
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
            topic_label = node_label(f"topic {sink_label(topic)}")
            yield f"{INDENT}{node_ids[stage.name]} --> {node_ids[stage.name]}p{number}[({topic_label})]"


def node_label(*label_lines: str) -> str:
    """Quote the label of a node, one line per argument, and escape characters of Mermaid and HTML."""
    return '"' + "<br>".join(label_line.translate(MERMAID_ESCAPES) for label_line in label_lines) + '"'


def source_label(source: PlanSource) -> str:
    """Return the label of an input."""
    return source.origin.path if isinstance(source.origin, FileOrigin) else f"topic {source.origin.topic}"


def iter_stage_labels(stage: Stage) -> Iterator[str]:
    """Yield the label lines of a stage: name, steps, key and windows, and what it computes."""
    yield stage.name
    yield from (describe_step(step) for prepared_input in stage.input_steps for step in prepared_input.steps)
    yield from (describe_step(step) for step in stage.steps)
    key = f"by {join_phrases(list(stage.key))}" if stage.key else "all together"
    if isinstance(stage.window, ChangelogWindows):
        yield "panes read as changes"
        return
    if isinstance(stage.window, StatefulFunction) and stage.window.is_pass_through:
        yield "each record as a row"
        return
    if isinstance(stage.window, StatefulFunction):
        order = "event-time" if stage.window.is_event_time_ordered else "arrival"
        yield f"{key}, in {order} order: stateful {stage.window.function.name}"
        return
    yield f"{key}, in {stage.window.describe()}"
    if stage.join is not None:
        yield f"{stage.join.kind} join ({stage.accumulation})"
        return
    yield ", ".join(output.name for output in stage.aggregates) + f" ({stage.accumulation})"


def sink_label(sink: Sink) -> str:
    """Return the label of a table or topic."""
    return f"{sink.name}: {sink.describe_content()}"
