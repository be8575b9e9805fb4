"""A sink that is no Delta table: the audit compares what it returns, and says so where it returns nothing."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.installed_kinds import write_modules
from tests.pipelines.engine.spark.stream_runner import send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
)
from tests.pipelines.engine.spark.test_replay import ReplayRunner
from tests.pipelines.outside_kinds import SINKS
from tests.quality.audit.audit_scopes import create_audit_scope

from penstock.engine.errors import ReplayError
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.checks.results_check import check_recomputed_results
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import CheckOutcome
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def runner(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ReplayRunner:
    write_modules(tmp_path, monkeypatch, outside_sinks=SINKS)
    topic = f"outside{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return ReplayRunner(build_plan(topic, fixed("10 seconds"), lateness=5_000), spark, broker, tmp_path)


def write_to(runner: ReplayRunner, **sinks_by_class: str) -> None:
    """Add outside sinks to the plan, by class and table name."""
    module = import_module("outside_sinks")
    stage = runner.plan.only_stage
    sinks = (*stage.sinks, *(getattr(module, name)(table) for name, table in sinks_by_class.items()))
    runner.plan = replace(runner.plan, stages=(replace(stage, sinks=sinks),))


def run_stream(runner: ReplayRunner) -> list[dict[str, Any]]:
    """Run the stream over some records, and return them."""
    sent = make_readings(300, seed=4)
    for partition in (0, 1):
        mine = [record for record in sent if int(record["device"][1:]) % 2 == partition]
        send(runner.broker, runner.plan.sources[0].name, mine, partition)
    live = runner.start()
    try:
        runner.progress.wait_for(len(sent), live)
    finally:
        live.drain()
    return sent


def audit(runner: ReplayRunner) -> CheckOutcome:
    scope = replace(
        create_audit_scope(runner, runner.clock), journal=next(runner.streams_folder.rglob("journal"))
    )
    return check_recomputed_results(
        scope, {topic: TopicView(scope, topic) for topic in scope.topics}, Sample()
    )


def test_the_audit_compares_what_a_sink_returns_and_names_what_it_cannot_compare(
    runner: ReplayRunner,
) -> None:
    write_to(runner, SqliteTable="by_device", JsonLines="lines")
    run_stream(runner)
    verdict = audit(runner)
    assert verdict.state == "passed", verdict
    assert "in 3 tables match their records" in verdict.summary
    assert verdict.summary.endswith(
        "not comparable, because the sink does not return its rows: external/lines"
    )
    with closing(sqlite3.connect(runner.warehouse / "external/by_device/result.sqlite")) as table, table:
        table.execute("UPDATE by_device SET n = n + 1 WHERE rowid = 1")
    verdict = audit(runner)
    assert verdict.state == "failed"
    assert "n is" in verdict.differences[0].description
    with pytest.raises(ReplayError, match="external/lines cannot be replaced"):
        runner.prepare_replay(runner.topic_source())


def test_a_replay_replaces_the_content_of_a_sink(runner: ReplayRunner) -> None:
    write_to(runner, SqliteTable="by_device")
    sent = run_stream(runner)
    file = runner.warehouse / "external/by_device/result.sqlite"
    with closing(sqlite3.connect(file)) as table, table:
        table.execute("UPDATE by_device SET n = n + 1")
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    seal = runner.finish_replay(replay)
    sink = runner.plan.only_stage.sinks[-1]
    assert list_windows(sink.read_rows(file.parent, runner.plan.name, seal)) == expect_windows(
        sent, TEN_SECONDS, 10_000
    )
    with closing(sqlite3.connect(file)) as table:
        assert table.execute("SELECT * FROM batches").fetchall() == [(runner.plan.name, seal)]
