"""A replay of a live stream replaces its tables; they match DuckDB."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.stream_runner import Progress, StreamRunner, send, set_s3a_options
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
    query_duckdb,
)

from penstock.core.kafka_client import BrokerAccess
from penstock.core.waiting import wait_until
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.excluded_records import ResentFinder, find_no_resent
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ReplayError
from penstock.engine.history import replaced_tables
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.history.replay import StreamReplay
from penstock.engine.history.replay_paths import ReplayPaths
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.spark.bounded_sources.start_offsets import ArchiveThenTopicSource, SourceFromOffsets
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage.file_access import remove_tree
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.engine.upgrade.stored_plan import assess_upgrade
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
BAD = [b"{", b"no reading"]


class ReplayRunner(StreamRunner):
    """Runs a stream in the folder of its last replay, as a host does."""

    @property
    def streams_folder(self) -> Path:
        return self.folder / "streams"

    def start(self, *, reading: bool = True) -> LiveStream:
        self.epoch += 1
        refuse_unfinished_switch(self.streams_folder, self.plan.name)
        folder = resolve_stream_folder(self.streams_folder, self.plan.name)
        config = StreamConfig(BrokerAccess(self.broker.bootstrap), self.warehouse)
        fence = WriteFence(self.plan.name, self.epoch, lambda: True)
        claim = make_stream_claim(self.streams_folder, self.plan.name)
        stream = LiveStream(
            self.plan,
            self.session,
            folder,
            config,
            fence,
            self.progress.record_outcome,
            lambda: self.clock,
            claim,
        )
        stream.start(reading=reading)
        return stream

    def prepare_replay(
        self, stored: BoundedSource, name: str = "again", find_resent: ResentFinder = find_no_resent
    ) -> StreamReplay:
        paths = ReplayPaths(self.streams_folder, self.warehouse, self.plan.name, name)
        config = BoundedRunConfig(paths.replay_folder, paths.replay_warehouse, 150, find_resent=find_resent)
        return StreamReplay(self.plan, self.session, stored, paths, config, lambda: self.clock)

    def finish_replay(self, replay: StreamReplay) -> int:
        self.epoch += 1
        return replay.finish_and_switch(WriteFence(self.plan.name, self.epoch, lambda: True)).batch_id

    def topic_source(self) -> TopicSource:
        return TopicSource(self.session, self.plan.sources[0].name, BrokerAccess(self.broker.bootstrap))

    def check_tables(self, sent: list[dict[str, Any]], bad: int = len(BAD)) -> None:
        """Check that every table counts each of these records once."""
        windows = expect_windows(sent, TEN_SECONDS, 10_000)
        assert list_windows(self.table(f"latest/{self.plan.name}")) == windows
        by_log = query_duckdb(
            "SELECT sum(CASE kind WHEN 'insert' THEN n ELSE -n END) FROM panes",
            panes=self.table(f"panes/{self.plan.name}"),
        )
        assert by_log == [(len(sent),)]
        (account,) = query_duckdb(
            "SELECT sum(read), sum(accepted), sum(quarantined) FROM l",
            l=self.table(f"ledger/{self.plan.name}"),
        )
        assert account == (len(sent) + bad, len(sent), bad)
        quarantine = self.table(f"quarantine/{self.plan.sources[0].name}")
        assert query_duckdb('SELECT count(*), count(DISTINCT "offset") FROM q', q=quarantine) == [(bad, bad)]


@pytest.fixture
def runner(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> ReplayRunner:
    topic = f"replayed{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return ReplayRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)


def send_to_both_partitions(runner: ReplayRunner, records: list[Any]) -> None:
    half = len(records) // 2
    send(runner.broker, runner.plan.sources[0].name, records[:half])
    send(runner.broker, runner.plan.sources[0].name, records[half:], partition=1)


def test_a_replay_during_live_traffic_counts_each_record_once(runner: ReplayRunner) -> None:
    first, second, third = (make_readings(300, seed) for seed in (1, 2, 3))
    send(runner.broker, runner.plan.sources[0].name, BAD)
    send_to_both_partitions(runner, first)
    stream = runner.start()
    runner.progress.wait_for(302, stream)
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    send_to_both_partitions(runner, second)
    runner.progress.wait_for(602, stream)
    stream.drain()
    before = runner.progress.outcomes[-1].batch_id
    versions = DeltaTable(runner.folder / "warehouse" / "latest" / runner.plan.name).version()
    assert runner.finish_replay(replay) > before
    assert DeltaTable(runner.folder / "warehouse" / "latest" / runner.plan.name).version() == versions + 1
    runner.check_tables(first + second)
    send_to_both_partitions(runner, third)
    runner.run_until_read(902)
    runner.check_tables(first + second + third)
    with pytest.raises(ReplayError, match="it runs from replay again already"):
        runner.prepare_replay(runner.topic_source())


def test_an_interrupted_switch_blocks_the_stream_until_it_is_finished(
    runner: ReplayRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = make_readings(200, seed=4)
    send(runner.broker, runner.plan.sources[0].name, BAD)
    send_to_both_partitions(runner, sent)
    runner.run_until_read(202)
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    with monkeypatch.context() as patch:
        patch.setattr(replaced_tables, "take_over_table", kill_at_call(2, replaced_tables.take_over_table))
        with pytest.raises(KeyboardInterrupt):
            runner.finish_replay(replay)
    with pytest.raises(ReplayError, match="replay again was interrupted while it switched"):
        runner.start()
    again = runner.prepare_replay(runner.topic_source())
    again.run_history()
    runner.finish_replay(again)
    runner.check_tables(sent)
    more = make_readings(100, seed=5)
    send_to_both_partitions(runner, more)
    runner.run_until_read(302)
    runner.check_tables(sent + more)


def kill_at_call(call: int, take_over_table: Callable[..., bool]) -> Callable[..., bool]:
    calls = 0

    def take_over(*args: Any, **more: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return take_over_table(*args, **more)

    return take_over


@pytest.mark.parametrize("where", ["folder", "object store"])
def test_a_replay_reads_records_that_only_the_archive_has(
    runner: ReplayRunner, spark: "SparkSession", where: str, request: pytest.FixtureRequest
) -> None:
    if where == "object store":
        runner.warehouse_override = request.getfixturevalue("bucket")
        set_s3a_options(spark, runner.warehouse)
    sent = make_readings(200, seed=6)
    topic = runner.plan.sources[0].name
    send(runner.broker, topic, BAD)
    send_to_both_partitions(runner, sent)
    runner.run_until_read(202)
    config = ArchiveConfig(
        BrokerAccess(runner.broker.bootstrap),
        runner.folder / "archive",
        runner.warehouse,
        batch_interval_ms=0,
    )
    progress = Progress()
    archive = ArchiveStream(
        topic, config, WriteFence("archive", 1, lambda: True), progress.record_outcome, lambda: runner.clock
    )
    archive.start()
    wait_until(lambda: progress.records_read == 202, PATIENCE_S, "the archive of all records")
    archive.drain()
    admin = AdminClient({"bootstrap.servers": runner.broker.bootstrap})
    (deletion,) = admin.delete_records([TopicPartition(topic, 0, 50)]).values()
    deletion.result(PATIENCE_S)
    more = make_readings(100, seed=7)
    send_to_both_partitions(runner, more)
    incomplete_replay = runner.prepare_replay(runner.topic_source(), "short")
    with pytest.raises(ReplayError, match=r"from offset 0, but the replay starts at 50\. Start earlier"):
        incomplete_replay.refuse_data_loss()
    files = open_file_source(spark, runner.plan.sources[0], str(runner.warehouse / "raw" / topic), "delta")
    replay = runner.prepare_replay(ArchiveThenTopicSource(files, runner.topic_source()))
    replay.refuse_data_loss()
    replay.run_history()
    runner.finish_replay(replay)
    runner.check_tables(sent + more)
    if where == "object store":
        remove_tree(replay._paths.replay_warehouse)
        runner.check_tables(sent + more)
        assert not (runner.folder / "warehouse").exists()


def test_a_replay_from_later_offsets_leaves_out_earlier_records(runner: ReplayRunner) -> None:
    sent = make_readings(200, seed=8)
    send_to_both_partitions(runner, sent)
    runner.run_until_read(200)
    topic = runner.plan.sources[0].name
    replay = runner.prepare_replay(
        SourceFromOffsets(runner.topic_source(), {f"{topic}/0": 40, f"{topic}/1": 10})
    )
    with pytest.raises(ReplayError, match="drop-earlier"):
        replay.refuse_data_loss()
    replay.run_history()
    runner.finish_replay(replay)
    kept = sent[40:100] + sent[110:]
    assert list_windows(runner.table(f"latest/{runner.plan.name}")) == expect_windows(
        kept, TEN_SECONDS, 10_000
    )


def test_a_replay_changes_the_columns_of_a_table(runner: ReplayRunner) -> None:
    sent = make_readings(100, seed=9)
    send_to_both_partitions(runner, sent)
    runner.run_until_read(100)
    runner.plan = drop_max_column(runner.plan)
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    runner.finish_replay(replay)
    assert "most" not in runner.table(f"latest/{runner.plan.name}").column_names
    send_to_both_partitions(runner, sent)
    runner.run_until_read(200)
    n = query_duckdb("SELECT sum(n) FROM t", t=runner.table(f"latest/{runner.plan.name}"))
    assert n == [(200,)]


def change_column(plan: Plan, name: str, spark_type: str) -> Plan:
    """Return the plan after a contract that gives a field another type."""
    (source,) = plan.sources
    columns = tuple(
        replace(column, type=spark_type) if column.name == name else column for column in source.columns
    )
    return replace(plan, sources=(replace(source, columns=columns),))


def test_a_changed_contract_keeps_each_record_or_is_refused(runner: ReplayRunner) -> None:
    contract = runner.plan
    runner.plan = change_column(contract, "temperature", "FLOAT")
    sent = make_readings(100, seed=10)
    send(runner.broker, runner.plan.sources[0].name, BAD)
    send_to_both_partitions(runner, sent)
    runner.run_until_read(102)
    before = runner.plan
    runner.plan = change_column(contract, "device", "BIGINT")
    replay = runner.prepare_replay(runner.topic_source(), "refused")
    replay.run_history()
    message = r"no longer reads 100 records of its results, such as \S+/0 offset 2: wrong_type:device"
    with pytest.raises(ReplayError, match=message):
        replay.refuse_unreadable_records()
    runner.plan = before
    runner.check_tables(sent)
    runner.plan = contract
    upgrade = assess_upgrade(resolve_stream_folder(runner.streams_folder, contract.name), contract)
    assert upgrade is not None
    assert upgrade.upgrade_class is UpgradeClass.REPLAY
    replay = runner.prepare_replay(runner.topic_source())
    replay.run_history()
    replay.refuse_unreadable_records()
    runner.finish_replay(replay)
    runner.check_tables(sent)
    later = make_readings(50, seed=11)
    send_to_both_partitions(runner, later)
    runner.run_until_read(152)
    runner.check_tables(sent + later)


def drop_max_column(plan: Plan) -> Plan:
    outputs = tuple(output for output in plan.only_stage.aggregates if output.name != "most")
    return replace(plan, stages=(replace(plan.only_stage, aggregates=outputs),))
