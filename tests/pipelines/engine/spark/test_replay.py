"""A stream's history run again while it goes on, and put in the place of what it wrote: compared with DuckDB."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from tests.pipelines.engine.spark.stream_runner import Progress, Running, reads_from, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    asked,
    expected,
    plan_over,
    readings,
    values,
)

from penstock.core.kafka_client import BrokerAccess
from penstock.core.waiting import wait_until
from penstock.engine.archive.archive_stream import ArchiveConfig, ArchiveStream
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ReplayError
from penstock.engine.history import replay as replays
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.history.replay import ReplayPaths, StreamReplay
from penstock.engine.plan import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.spark.bounded_sources.start_offsets import ArchiveThenTopicSource, SourceFromOffsets
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage.file_access import remove_tree
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
BAD = [b"{", b"no reading"]


class Life(Running):
    """A stream as a host keeps it: in the folder that its last replay made."""

    @property
    def streams(self) -> Path:
        return self.folder / "streams"

    def start(self, *, reading: bool = True) -> LiveStream:
        self.epoch += 1
        refuse_unfinished_switch(self.streams, self.plan.name)
        place = resolve_stream_folder(self.streams, self.plan.name)
        config = StreamConfig(BrokerAccess(self.broker.bootstrap), self.warehouse)
        right = WriteFence(self.plan.name, self.epoch, lambda: True)
        stream = LiveStream(
            self.plan, self.session, place, config, right, self.progress.told, lambda: self.clock
        )
        stream.start(reading=reading)
        return stream

    def replay(self, stored: BoundedSource, name: str = "again") -> StreamReplay:
        places = ReplayPaths(self.streams, self.warehouse, self.plan.name, name)
        config = BoundedRunConfig(places.replay_folder, places.replay_warehouse, max_records_per_batch=150)
        return StreamReplay(self.plan, self.session, stored, places, config, lambda: self.clock)

    def finish(self, replay: StreamReplay) -> int:
        self.epoch += 1
        return replay.finish_and_switch(WriteFence(self.plan.name, self.epoch, lambda: True)).batch_id

    def topic(self) -> TopicSource:
        return TopicSource(self.session, self.plan.sources[0].name, BrokerAccess(self.broker.bootstrap))

    def agrees_with(self, sent: list[dict[str, Any]], bad: int = len(BAD)) -> None:
        """Every table says of these records what it would had it read them once."""
        right = expected(sent, TEN_SECONDS, 10_000)
        assert values(self.table(f"latest/{self.plan.name}")) == right
        by_log = asked(
            "SELECT sum(CASE kind WHEN 'insert' THEN n ELSE -n END) FROM panes",
            panes=self.table(f"panes/{self.plan.name}"),
        )
        assert by_log == [(len(sent),)]
        (account,) = asked(
            "SELECT sum(read), sum(folded), sum(quarantined) FROM l", l=self.table(f"ledger/{self.plan.name}")
        )
        assert account == (len(sent) + bad, len(sent), bad)
        quarantine = self.table(f"quarantine/{self.plan.sources[0].name}")
        assert asked('SELECT count(*), count(DISTINCT "offset") FROM q', q=quarantine) == [(bad, bad)]


@pytest.fixture
def life(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> Life:
    topic = f"replayed{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    return Life(plan_over(topic, fixed("10 seconds")), spark, broker, tmp_path)


def send_more(life: Life, records: list[Any]) -> None:
    half = len(records) // 2
    send(life.broker, life.plan.sources[0].name, records[:half])
    send(life.broker, life.plan.sources[0].name, records[half:], partition=1)


def test_a_replay_while_records_flow_replaces_and_counts_nothing_twice(life: Life) -> None:
    first, second, third = (readings(300, seed) for seed in (1, 2, 3))
    send(life.broker, life.plan.sources[0].name, BAD)
    send_more(life, first)
    stream = life.start()
    life.progress.wait_for(302, stream)
    replay = life.replay(life.topic())
    replay.run_history()
    send_more(life, second)
    life.progress.wait_for(602, stream)
    stream.drain()
    before = life.progress.outcomes[-1].batch_id
    versions = DeltaTable(life.folder / "warehouse" / "latest" / life.plan.name).version()
    assert life.finish(replay) > before
    assert DeltaTable(life.folder / "warehouse" / "latest" / life.plan.name).version() == versions + 1
    life.agrees_with(first + second)
    send_more(life, third)
    life.until_read(902)
    life.agrees_with(first + second + third)
    with pytest.raises(ReplayError, match="it runs from replay again already"):
        life.replay(life.topic())


def test_a_switch_that_was_cut_off_keeps_the_stream_from_starting_until_it_is_finished(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = readings(200, seed=4)
    send(life.broker, life.plan.sources[0].name, BAD)
    send_more(life, sent)
    life.until_read(202)
    replay = life.replay(life.topic())
    replay.run_history()
    with monkeypatch.context() as patched:
        patched.setattr(replays, "take_over_table", killed_at(2, replays.take_over_table))
        with pytest.raises(KeyboardInterrupt):
            life.finish(replay)
    with pytest.raises(ReplayError, match="replay again was interrupted while it switched"):
        life.start()
    again = life.replay(life.topic())
    again.run_history()
    life.finish(again)
    life.agrees_with(sent)
    more = readings(100, seed=5)
    send_more(life, more)
    life.until_read(302)
    life.agrees_with(sent + more)


def killed_at(call: int, really: Callable[..., bool]) -> Callable[..., bool]:
    calls = 0

    def take_over(*args: Any, **more: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return really(*args, **more)

    return take_over


@pytest.mark.parametrize("where", ["folder", "object store"])
def test_a_replay_of_what_only_the_archive_still_has(
    life: Life, spark: "SparkSession", where: str, request: pytest.FixtureRequest
) -> None:
    if where == "object store":
        life.elsewhere = request.getfixturevalue("bucket")
        reads_from(spark, life.warehouse)
    sent = readings(200, seed=6)
    topic = life.plan.sources[0].name
    send(life.broker, topic, BAD)
    send_more(life, sent)
    life.until_read(202)
    config = ArchiveConfig(
        BrokerAccess(life.broker.bootstrap), life.folder / "archive", life.warehouse, batch_interval_ms=0
    )
    told = Progress()
    archive = ArchiveStream(
        topic, config, WriteFence("archive", 1, lambda: True), told.told, lambda: life.clock
    )
    archive.start()
    wait_until(lambda: told.read == 202, 60, "the archive to have everything")
    archive.drain()
    admin = AdminClient({"bootstrap.servers": life.broker.bootstrap})
    (gone,) = admin.delete_records([TopicPartition(topic, 0, 50)]).values()
    gone.result(10)
    more = readings(100, seed=7)
    send_more(life, more)
    short = life.replay(life.topic(), "short")
    with pytest.raises(ReplayError, match=r"from offset 0, but the replay starts at 50\. Start earlier"):
        short.refuse_data_loss()
    files = open_file_source(spark, life.plan.sources[0], str(life.warehouse / "raw" / topic), "delta")
    replay = life.replay(ArchiveThenTopicSource(files, life.topic()))
    replay.refuse_data_loss()
    replay.run_history()
    life.finish(replay)
    life.agrees_with(sent + more)
    if where == "object store":
        remove_tree(replay._paths.replay_warehouse)
        life.agrees_with(sent + more)
        assert not (life.folder / "warehouse").exists()


def test_a_replay_may_begin_later_and_then_tells_of_nothing_before(life: Life) -> None:
    sent = readings(200, seed=8)
    send_more(life, sent)
    life.until_read(200)
    topic = life.plan.sources[0].name
    replay = life.replay(SourceFromOffsets(life.topic(), {f"{topic}/0": 40, f"{topic}/1": 10}))
    with pytest.raises(ReplayError, match="drop-earlier"):
        replay.refuse_data_loss()
    replay.run_history()
    life.finish(replay)
    kept = sent[40:100] + sent[110:]
    assert values(life.table(f"latest/{life.plan.name}")) == expected(kept, TEN_SECONDS, 10_000)


def test_a_replay_with_other_columns_gives_the_table_these_columns(life: Life) -> None:
    sent = readings(100, seed=9)
    send_more(life, sent)
    life.until_read(100)
    life.plan = fewer(life.plan)
    replay = life.replay(life.topic())
    replay.run_history()
    life.finish(replay)
    assert "most" not in life.table(f"latest/{life.plan.name}").column_names
    send_more(life, sent)
    life.until_read(200)
    n = asked("SELECT sum(n) FROM t", t=life.table(f"latest/{life.plan.name}"))
    assert n == [(200,)]


def fewer(plan: Plan) -> Plan:
    outputs = tuple(output for output in plan.only_stage.aggregates if output.name != "most")
    return replace(plan, stages=(replace(plan.only_stage, aggregates=outputs),))
