"""Measures an audit with full recomputation, against a bounded run over the same records.

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
from tests.benchmarks.bench_pipelines_catchup import format_rate_spread
from tests.benchmarks.rivals import (
    KEY_COUNT,
    BenchScene,
    EngineRival,
    now_ms,
    open_scene,
    plan_mean_by_device,
    start_load,
    wait_until_read,
)
from tests.quality.audit.audited_stream import StreamArchive

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan import Plan
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.windows.fixed import Fixed
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.scope import AuditScope

AUDITED_TOPIC = "audited"


def run_stream(one: BenchScene, plan: Plan, records: int, at_once: int = 500_000) -> Path:
    """Run a stream over all records and archive them; return its folder."""
    stream = EngineRival(one, plan, at_once)
    stream.start()
    wait_until_read(stream, records)
    stream.stop()
    folder = one.folder / f"{one.folder_count:04d}-ours"
    place = StreamArchive(one.broker, AUDITED_TOPIC, folder)
    place.archive_all(place.open_archive(), batch_size=200_000)
    return folder


def build_scope(one: BenchScene, plan: Plan, folder: Path) -> AuditScope:
    """What is audited; the journal stands in for the control store, which holds the same of so few batches."""
    return AuditScope(
        plan=plan,
        batches=[
            to_batch_record(plan.name, outcome)
            for outcome in BatchJournal(folder / "stream" / "journal").read_outcomes()
        ],
        warehouse=folder / "warehouse",
        journal=folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess(one.broker.bootstrap),
        decisions_folder=folder / "quarantine",
        scratch_folder=folder / "scratch",
        clock=now_ms,
        open_session=lambda: one.session,
    )


def run_bounded_plan(one: BenchScene, plan: Plan) -> None:
    """Run the pipeline over the topic to its end."""
    place = one.new_folder("bounded")
    stored = TopicSource(one.session, AUDITED_TOPIC, BrokerAccess(one.broker.bootstrap))
    run_bounded(plan, one.session, stored, BoundedRunConfig(place / "run", place / "tables"), now_ms)


def time_action(what: Callable[[], object]) -> float:
    """Return the seconds of an action."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def audit_by_batches(one: BenchScene, plan: Plan, records: int, count: int) -> tuple[int, float]:
    """Audit a stream with discarding panes that was cut into batches; return how many, and the seconds."""
    plan = replace(plan, stages=(replace(plan.only_stage, accumulation="discarding"),))
    folder = run_stream(one, plan, records, -(-records // count))
    scope = build_scope(one, plan, folder)
    began = time.perf_counter()
    report = run_audit(scope, Sample())
    took = time.perf_counter() - began
    assert {verdict.state for verdict in report.verdicts} == {"passed"}, report.verdicts
    return len(scope.batches), took


def main(records: int, repeats: int, batches: int) -> None:
    """Measure in turns after a round that is not counted."""
    plan = plan_mean_by_device(AUDITED_TOPIC, Fixed(10_000))
    plan = replace(plan, stages=(replace(plan.only_stage, sinks=(PaneLog("bench"), LatestValues("bench"))),))
    with open_scene() as one:
        one.broker.create_topic(AUDITED_TOPIC, 2)
        start_load(one.broker.bootstrap, AUDITED_TOPIC, 0, records, KEY_COUNT).wait()
        folder = run_stream(one, plan, records)
        rounds = []
        for _ in range(repeats + 1):
            run = time_action(lambda: run_bounded_plan(one, plan))
            began = time.perf_counter()
            report = run_audit(build_scope(one, plan, folder), Sample())
            rounds.append((run, time.perf_counter() - began))
            states = {verdict.state for verdict in report.verdicts}
            assert states == {"passed"}, report.verdicts
        cut = audit_by_batches(one, plan, records, batches) if batches else None
    table = Table(
        "",
        "seconds",
        "of the run",
        title=f"{records:,} records, {repeats} repeats: median (least to greatest)",
    )
    table.add_row("bounded run", format_rate_spread([run for run, _ in rounds[1:]], ".1f"), "1")
    shares = [audited / run for run, audited in rounds[1:]]
    table.add_row(
        "audit",
        format_rate_spread([audited for _, audited in rounds[1:]], ".1f"),
        format_rate_spread(shares, ".2f"),
    )
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
