"""Checks of sinks: there is at least one, and no two stages share a table or topic."""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction


def check_sinks(plan: Plan) -> None:
    """Refuse a pipeline that writes nothing, and a table or topic that is written twice."""
    read_topics = {source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin)}
    stage_by_path: dict[str, str] = {}
    for stage in plan.stages:
        for sink in stage.all_sinks:
            keyword = "write" if sink.published_topic is None else "publish"
            first_writer = stage_by_path.get(sink.path)
            problem = f"{describe_target(sink)} is written by both {first_writer} and {stage.name}"
            fix = "Use different names, or unite the inputs before they are aggregated"
            require(first_writer is None, keyword, problem, fix)
            stage_by_path[sink.path] = stage.name
            fix = "Publish to a topic that the pipeline does not read"
            require(sink.published_topic not in read_topics, keyword, f"{sink.name} is read here", fix)
    require(len(stage_by_path) > 0, "write", "no table", "Add write(...)")


def check_side_outputs(stage: Stage, window: StatefulFunction) -> None:
    """Refuse side outputs without a table, and tables of undeclared side outputs."""
    outputs = [output.name for output in window.outputs]
    written_outputs = [sink.output for sink in stage.sinks]
    for name in written_outputs:
        fix = f"Name one of: {', '.join(outputs)}" if outputs else "Declare it: stateful(..., outputs={...})"
        require(window.has_output(name), "write.output", f"{stage.name} has no output {name!r}", fix)
    for name in outputs:
        fix = f"Add write('{name}', mode='log', output='{name}')"
        require(name in written_outputs, f"stateful.outputs.{name}", "is not written", fix)


def describe_target(sink: Sink) -> str:
    """Return the name of a table or topic for messages."""
    return f"table {sink.name}" if sink.published_topic is None else f"topic {sink.name}"
