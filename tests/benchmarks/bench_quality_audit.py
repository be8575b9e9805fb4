"""What an audit costs: every check with full recomputation, against a plain bounded run over the same records.

The stream has read the topic, and its archive has it too. A time is of the whole run, in a session that is there.
With `--batches` a stream whose results depend on its batches is audited as well, cut into so
many.
`python -m tests.benchmarks.bench_quality_audit [--records N] [--repeats N] [--batches N]`.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import spread
from tests.benchmarks.rivals import KEYS, Ours, Scene, load, now_ms, plan_over, scene, until_read
from tests.quality.audit.stream import Beside

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.host.telling import batch_record
from penstock.pipelines.plan import LatestValues, PaneLog, Plan
from penstock.pipelines.plan.windows import Fixed
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored.topic import StoredTopic
from penstock.quality.audit.audit import audit
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.scope import Broker, Scope

TOPIC = "audited"


def lived(one: Scene, plan: Plan, records: int, at_once: int = 500_000) -> Path:
    """Have a stream read all records, and archive them; return the stream's folder."""
    stream = Ours(one, plan, at_once)
    stream.start()
    until_read(stream, records)
    stream.stop()
    folder = one.folder / f"{one.made:04d}-ours"
    place = Beside(one.broker, TOPIC, folder)
    place.take_all(place.archive(), at_once=200_000)
    return folder


def scope_of(one: Scene, plan: Plan, folder: Path) -> Scope:
    """What is audited; the journal stands in for the control store, which holds the same of so few batches."""
    return Scope(
        plan=plan,
        batches=[
            batch_record(plan.name, outcome) for outcome in Journal(folder / "stream" / "journal").outcomes()
        ],
        warehouse=folder / "warehouse",
        journal=folder / "stream" / "journal",
        producers={},
        broker=Broker(one.broker.bootstrap),
        decisions=folder / "quarantine",
        scratch=folder / "scratch",
        clock=now_ms,
        session=lambda: one.session,
    )


def bounded(one: Scene, plan: Plan) -> None:
    """Run the pipeline over the topic to its end."""
    place = one.fresh("bounded")
    stored = StoredTopic(one.session, TOPIC, one.broker.bootstrap)
    run_bounded(plan, one.session, stored, BoundedConfig(place / "run", place / "tables"), now_ms)


def seconds(what: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def by_batches(one: Scene, plan: Plan, records: int, count: int) -> tuple[int, float]:
    """Audit a stream with discarding panes that was cut into batches; return how many, and the seconds."""
    plan = replace(plan, stages=(replace(plan.stage, accumulation="discarding"),))
    folder = lived(one, plan, records, -(-records // count))
    scope = scope_of(one, plan, folder)
    began = time.perf_counter()
    report = audit(scope, Sample())
    took = time.perf_counter() - began
    assert {verdict.state for verdict in report.verdicts} == {"right"}, report.verdicts
    return len(scope.batches), took


def main(records: int, repeats: int, batches: int) -> None:
    """Measure in turns after a round that is not counted."""
    plan = plan_over(TOPIC, Fixed(10_000))
    plan = replace(plan, stages=(replace(plan.stage, sinks=(PaneLog("bench"), LatestValues("bench"))),))
    with scene() as one:
        one.broker.create_topic(TOPIC, 2)
        load(one.broker.bootstrap, TOPIC, 0, records, KEYS).wait()
        folder = lived(one, plan, records)
        rounds = []
        for _ in range(repeats + 1):
            run = seconds(lambda: bounded(one, plan))
            began = time.perf_counter()
            report = audit(scope_of(one, plan, folder), Sample())
            rounds.append((run, time.perf_counter() - began))
            states = {verdict.state for verdict in report.verdicts}
            assert states == {"right"}, report.verdicts
        cut = by_batches(one, plan, records, batches) if batches else None
    table = Table(
        "",
        "seconds",
        "of the run",
        title=f"{records:,} records, {repeats} repeats: median (least to greatest)",
    )
    table.add_row("bounded run", spread([run for run, _ in rounds[1:]], ".1f"), "1")
    shares = [audited / run for run, audited in rounds[1:]]
    table.add_row("audit", spread([audited for _, audited in rounds[1:]], ".1f"), spread(shares, ".2f"))
    if cut is not None:
        run = statistics.median(run for run, _ in rounds[1:])
        table.add_row(f"audit, {cut[0]} batches run again", f"{cut[1]:.1f}", f"{cut[1] / run:.2f}")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=int, default=0)
    chosen = parser.parse_args()
    main(chosen.records, chosen.repeats, chosen.batches)
