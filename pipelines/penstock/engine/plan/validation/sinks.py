"""What must hold between the places that results go to: there is one at least, and no two stages share one."""

from penstock.engine.plan.changelog import ChangelogTopic
from penstock.engine.plan.sinks import PaneLog, Sink
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.validation.argument_checks import require


def check_sinks(plan: Plan) -> None:
    """Refuse a pipeline that writes nothing, and a table or topic that is written twice."""
    stage_by_target: dict[tuple[type, str], str] = {}
    for stage in plan.stages:
        for sink in (*stage.sinks, *stage.topics):
            keyword = "publish" if isinstance(sink, ChangelogTopic) else "write"
            target = (type(sink), describe_target(sink))
            first_writer = stage_by_target.get(target)
            problem = f"{target[1]} is written by {first_writer} already, and by {stage.name} too"
            fix = "Give each a name of its own, or unite what is to go to one place before it is aggregated"
            require(target not in stage_by_target, keyword, problem, fix)
            stage_by_target[target] = stage.name
    for topic in (source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin)):
        fix = "Publish to a topic that it does not read, or what it says is never over"
        require(
            (ChangelogTopic, f"topic {topic}") not in stage_by_target, "publish", f"{topic} is read here", fix
        )
    require(len(stage_by_target) > 0, "write", "no table", "Say where results go with write(...)")


def check_side_outputs(stage: Stage, window: StatefulFunction) -> None:
    """Refuse an output of a function that nobody writes, and a table of one that it does not have."""
    outputs = [output.name for output in window.outputs]
    written_outputs = [sink.output for sink in stage.sinks if isinstance(sink, PaneLog)]
    for name in written_outputs:
        fix = f"Name one of: {', '.join(outputs)}" if outputs else "Declare it: stateful(..., outputs={...})"
        require(window.has_output(name), "write.output", f"{name!r} is no output of {stage.name}", fix)
    for name in outputs:
        fix = f"Say where it goes: write('{name}', mode='log', output='{name}')"
        require(name in written_outputs, f"stateful.outputs.{name}", "nobody writes it", fix)


def describe_target(sink: Sink | ChangelogTopic) -> str:
    """Return what a person calls the place."""
    return f"topic {sink.topic}" if isinstance(sink, ChangelogTopic) else f"table {sink.table}"
