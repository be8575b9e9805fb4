"""Checks of sinks: there is at least one, and no two stages share a table or topic."""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.changelog import ChangelogTopic
from penstock.engine.plan.sinks import PaneLog, Sink
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction


def check_sinks(plan: Plan) -> None:
    """Refuse a pipeline that writes nothing, and a table or topic that is written twice."""
    stage_by_target: dict[tuple[type, str], str] = {}
    for stage in plan.stages:
        for sink in (*stage.sinks, *stage.topics):
            keyword = "publish" if isinstance(sink, ChangelogTopic) else "write"
            target = (type(sink), describe_target(sink))
            first_writer = stage_by_target.get(target)
            problem = f"{target[1]} is written by both {first_writer} and {stage.name}"
            fix = "Use different names, or unite the inputs before they are aggregated"
            require(target not in stage_by_target, keyword, problem, fix)
            stage_by_target[target] = stage.name
    for topic in (source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin)):
        fix = "Publish to a topic that the pipeline does not read"
        require(
            (ChangelogTopic, f"topic {topic}") not in stage_by_target, "publish", f"{topic} is read here", fix
        )
    require(len(stage_by_target) > 0, "write", "no table", "Add write(...)")


def check_side_outputs(stage: Stage, window: StatefulFunction) -> None:
    """Refuse side outputs without a table, and tables of undeclared side outputs."""
    outputs = [output.name for output in window.outputs]
    written_outputs = [sink.output for sink in stage.sinks if isinstance(sink, PaneLog)]
    for name in written_outputs:
        fix = f"Name one of: {', '.join(outputs)}" if outputs else "Declare it: stateful(..., outputs={...})"
        require(window.has_output(name), "write.output", f"{stage.name} has no output {name!r}", fix)
    for name in outputs:
        fix = f"Add write('{name}', mode='log', output='{name}')"
        require(name in written_outputs, f"stateful.outputs.{name}", "is not written", fix)


def describe_target(sink: Sink | ChangelogTopic) -> str:
    """Return the name of a table or topic for messages."""
    return f"topic {sink.topic}" if isinstance(sink, ChangelogTopic) else f"table {sink.table}"
