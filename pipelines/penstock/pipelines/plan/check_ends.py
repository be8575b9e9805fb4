"""What must hold between the places that results go to: there is one at least, and no two stages share one."""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.relaying import Published
from penstock.pipelines.plan.sinks import Sink
from penstock.pipelines.plan.stage import Plan


def check_ends(plan: Plan) -> None:
    """Refuse a pipeline that writes nothing, and a table or topic that is written twice."""
    written: dict[Sink | Published, str] = {}
    for stage in plan.stages:
        for end in (*stage.sinks, *stage.topics):
            word = "publish" if isinstance(end, Published) else "write"
            found = f"{called(end)} is written by {written.get(end)} already, and by {stage.name} too"
            fix = "Give each a name of its own, or unite what is to go to one place before it is aggregated"
            require(end not in written, word, found, fix)
            written[end] = stage.name
    require(len(written) > 0, "write", "no table", "Say where results go with write(...)")


def called(end: Sink | Published) -> str:
    """Return what a person calls the place."""
    return f"topic {end.topic}" if isinstance(end, Published) else f"table {end.table}"
