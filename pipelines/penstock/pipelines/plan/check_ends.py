"""What must hold between the places that results go to: there is one at least, and no two stages share one."""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.relaying import Published
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.sinks import PaneLog, Sink
from penstock.pipelines.plan.source import Topic
from penstock.pipelines.plan.stage import Plan, Stage


def check_ends(plan: Plan) -> None:
    """Refuse a pipeline that writes nothing, and a table or topic that is written twice."""
    written: dict[tuple[type, str], str] = {}
    for stage in plan.stages:
        for end in (*stage.sinks, *stage.topics):
            word = "publish" if isinstance(end, Published) else "write"
            place = (type(end), called(end))
            found = f"{called(end)} is written by {written.get(place)} already, and by {stage.name} too"
            fix = "Give each a name of its own, or unite what is to go to one place before it is aggregated"
            require(place not in written, word, found, fix)
            written[place] = stage.name
    for topic in (source.origin.topic for source in plan.sources if isinstance(source.origin, Topic)):
        fix = "Publish to a topic that it does not read, or what it says is never over"
        require((Published, f"topic {topic}") not in written, "publish", f"{topic} is read here", fix)
    require(len(written) > 0, "write", "no table", "Say where results go with write(...)")


def check_outputs(stage: Stage, window: Remembering) -> None:
    """Refuse an output of a function that nobody writes, and a table of one that it does not have."""
    outputs = [output.name for output in window.outputs]
    written = [sink.output for sink in stage.sinks if isinstance(sink, PaneLog)]
    for name in written:
        fix = f"Name one of: {', '.join(outputs)}" if outputs else "Declare it: remember(..., outputs={...})"
        require(window.sends_to(name), "write.output", f"{name!r} is no output of {stage.name}", fix)
    for name in outputs:
        fix = f"Say where it goes: write('{name}', mode='log', output='{name}')"
        require(name in written, f"remember.outputs.{name}", "nobody writes it", fix)


def called(end: Sink | Published) -> str:
    """Return what a person calls the place."""
    return f"topic {end.topic}" if isinstance(end, Published) else f"table {end.table}"
