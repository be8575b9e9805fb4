"""Measures an audit with full recomputation, against a bounded run over the same records.

The stream has read the topic, and its archive is complete. Each time covers a whole run in an open session. With
`--batches`, the benchmark also audits a stream whose results depend on its batches, with that many batches.
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
from tests.benchmarks.bench_pipelines_catchup import format_spread
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
from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.windows.fixed import Fixed
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.scope import AuditScope

AUDITED_TOPIC = "audited"


def run_stream(scene: BenchScene, plan: Plan, records: int, records_per_batch: int = 500_000) -> Path:
    """Run a stream over all records and archive them; return its folder."""
    stream = EngineRival(scene, plan, records_per_batch)
    stream.start()
    wait_until_read(stream, records)
    stream.stop()
    folder = scene.folder / f"{scene.folder_count:04d}-penstock"
    archive = StreamArchive(scene.broker, AUDITED_TOPIC, folder)
    archive.archive_all(archive.open_archive(), batch_size=200_000)
    return folder


def build_scope(scene: BenchScene, plan: Plan, folder: Path) -> AuditScope:
    """Return the scope of the audit; its batches come from the journal instead of the control store."""
    return AuditScope(
        plan=plan,
        batches=[
            to_batch_record(plan.name, outcome)
            for outcome in BatchJournal(folder / "stream" / "journal").read_outcomes()
        ],
        warehouse=folder / "warehouse",
        journal=folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess(scene.broker.bootstrap),
        decisions_folder=folder / "quarantine",
        scratch_folder=folder / "scratch",
        clock=now_ms,
        open_session=lambda: scene.session,
    )


def run_bounded_plan(scene: BenchScene, plan: Plan) -> None:
    """Run the pipeline over the topic to its end."""
    folder = scene.new_folder("bounded")
    stored = TopicSource(scene.session, AUDITED_TOPIC, BrokerAccess(scene.broker.bootstrap))
    run_bounded(plan, scene.session, stored, BoundedRunConfig(folder / "run", folder / "tables"), now_ms)


def time_action(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def audit_by_batches(scene: BenchScene, plan: Plan, records: int, count: int) -> tuple[int, float]:
    """Audit a stream with discarding panes; return its number of batches and the seconds of the audit."""
    plan = replace(plan, stages=(replace(plan.only_stage, accumulation="discarding"),))
    folder = run_stream(scene, plan, records, -(-records // count))
    scope = build_scope(scene, plan, folder)
    started = time.perf_counter()
    report = run_audit(scope, Sample())
    seconds = time.perf_counter() - started
    assert {verdict.state for verdict in report.verdicts} == {"passed"}, report.verdicts
    return len(scope.batches), seconds


def main(records: int, repeats: int, batches: int) -> None:
    """Measure in turns, after a warm-up round."""
    plan = plan_mean_by_device(AUDITED_TOPIC, Fixed(10_000))
    plan = replace(plan, stages=(replace(plan.only_stage, sinks=(PaneLog("bench"), LatestValues("bench"))),))
    with open_scene() as scene:
        scene.broker.create_topic(AUDITED_TOPIC, 2)
        start_load(scene.broker.bootstrap, AUDITED_TOPIC, 0, records, KEY_COUNT).wait()
        folder = run_stream(scene, plan, records)
        rounds = []
        for _ in range(repeats + 1):
            run = time_action(lambda: run_bounded_plan(scene, plan))
            started = time.perf_counter()
            report = run_audit(build_scope(scene, plan, folder), Sample())
            rounds.append((run, time.perf_counter() - started))
            states = {verdict.state for verdict in report.verdicts}
            assert states == {"passed"}, report.verdicts
        by_batches = audit_by_batches(scene, plan, records, batches) if batches else None
    table = Table(
        "variant",
        "seconds",
        "of a bounded run",
        title=f"{records:,} records, {repeats} repeats: median (min to max)",
    )
    table.add_row("bounded run", format_spread([run for run, _ in rounds[1:]], ".1f"), "1")
    shares = [audited / run for run, audited in rounds[1:]]
    table.add_row(
        "audit",
        format_spread([audited for _, audited in rounds[1:]], ".1f"),
        format_spread(shares, ".2f"),
    )
    if by_batches is not None:
        run = statistics.median(run for run, _ in rounds[1:])
        table.add_row(
            f"audit, {by_batches[0]} batches executed again",
            f"{by_batches[1]:.1f}",
            f"{by_batches[1] / run:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records in the topic")
    parser.add_argument("--repeats", type=int, default=3, help="measured rounds")
    parser.add_argument("--batches", type=int, default=0, help="also audit a stream of this many batches")
    arguments = parser.parse_args()
    main(arguments.records, arguments.repeats, arguments.batches)
