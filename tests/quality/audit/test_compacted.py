"""Topics in which a record gives way to the next one of its key: what is gone so is held against nobody."""

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from deltalake import DeltaTable
from tests.quality.audit.stream import Lived, states

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.offset_runs import check_records_read, has_compacted_records, merge_runs
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import AuditReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEDGER = pa.table(
    {"topic": ["t"], "partition": pa.array([0], pa.int32()), "batch_id": [0], "start": [0], "end": [9],
     "read": [9]}
)  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "wrong", "gone"),
    [([(0, 9)], False, False), ([(0, 2), (7, 2)], False, True), ([(0, 4)], False, True)],
)
def test_a_batch_may_have_read_more_than_a_compacted_topic_holds_now(
    runs: list[tuple[int, int]], wrong: bool, gone: bool
) -> None:
    held = {("t", 0): merge_runs(runs)}
    assert bool(list(check_records_read(LEDGER, held, "the topic", is_compacted=True))) is wrong
    assert has_compacted_records(LEDGER, held) is gone
    assert bool(list(check_records_read(LEDGER, held, "the topic"))) is gone


def test_no_batch_can_have_read_less_than_a_topic_holds() -> None:
    fewer = LEDGER.set_column(5, "read", pa.array([8]))
    (one,) = check_records_read(fewer, {("t", 0): merge_runs([(0, 9)])}, "the topic", is_compacted=True)
    assert "the batch read 8 records of offsets 0 to 8; the topic has 9" in str(one)


@pytest.fixture
def broker_that_cleans(tmp_path: Path, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    broker = LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths)
    quickly = (("log.cleaner.backoff.ms", "100"),)
    with LocalBroker(dataclasses.replace(broker.config, properties=quickly), kafka_jar_paths) as running:
        yield running


def compact(broker: LocalBroker, topic: str) -> None:
    """Have a topic compacted from now on, as soon as something more is sent to it."""
    wanted = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.001"}
    changes = [ConfigEntry(*each, incremental_operation=AlterConfigOpType.SET) for each in wanted.items()]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def said(lived: Lived, folder: Path) -> AuditReport:
    return run_audit(dataclasses.replace(lived.scope(folder), compacted_topics=[lived.topic]), Sample())


def offsets(lived: Lived) -> list[tuple[int, int]]:
    """The addresses that the topic has of what was archived."""
    kept = TopicView(lived.scope(lived.folder), lived.topic)
    records = (
        kept.topic_source.read_records(kept.to_ranges(kept.shared_bounds()))
        .select("partition", "offset")
        .toArrow()
    )
    return [(row["partition"], row["offset"]) for row in records.to_pylist()]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_stream_over_a_compacted_topic_is_right_and_what_is_wrong_with_what_is_left_is_found(
    spark: "SparkSession", broker_that_cleans: LocalBroker, tmp_path: Path
) -> None:
    lived = Lived(spark, broker_that_cleans, "compacted", tmp_path / "stream")
    lived.live(6_000)
    compact(broker_that_cleans, lived.topic)
    for more in range(6_001, 6_013):
        lived.feed(more)  # which nobody reads: a segment is compacted when there is another after it
    wait_until(
        lambda: len(offsets(lived)) < 5_000, 90, "the compaction of what is beyond the newest segments"
    )
    found = said(lived, lived.folder)
    assert {one.check: one.summary for one in found.verdicts if one.state != "passed"} == {}
    alone = lived.copy("without an archive")
    for table in ("raw/compacted", "ledger/archive-compacted"):
        shutil.rmtree(alone / "warehouse" / table)
    told = states(said(lived, alone))
    assert {check: state for check, state in told.items() if state != "passed"} == dict.fromkeys(
        ("archive", "reading", "results"), "unproven"
    )
    edited = lived.copy("edited")
    last = max(offset for partition, offset in offsets(lived) if partition == 2)
    DeltaTable(edited / "warehouse/raw/compacted").update(
        {"value": "key"}, predicate=f'partition = 2 AND "offset" = {last}'
    )
    assert str(said(lived, edited).first_difference).startswith(
        f"compacted/2 offset {last}: its value differs"
    )
