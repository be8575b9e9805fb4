"""Audits of compacted topics, whose missing records are no differences."""

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
from tests.patience import PATIENCE_S
from tests.quality.audit.audited_stream import AuditedStream, find_states

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
    ("runs", "is_wrong", "is_compacted"),
    [([(0, 9)], False, False), ([(0, 2), (7, 2)], False, True), ([(0, 4)], False, True)],
)
def test_a_batch_may_have_read_more_than_a_compacted_topic_has(
    runs: list[tuple[int, int]], is_wrong: bool, is_compacted: bool
) -> None:
    present = {("t", 0): merge_runs(runs)}
    assert bool(list(check_records_read(LEDGER, present, "the topic", is_compacted=True))) is is_wrong
    assert has_compacted_records(LEDGER, present) is is_compacted
    assert bool(list(check_records_read(LEDGER, present, "the topic"))) is is_compacted


def test_a_batch_that_read_less_than_the_topic_has_is_found() -> None:
    fewer = LEDGER.set_column(5, "read", pa.array([8]))
    (verdict,) = check_records_read(fewer, {("t", 0): merge_runs([(0, 9)])}, "the topic", is_compacted=True)
    assert "the batch read 8 records of offsets 0 to 8; the topic has 9" in str(verdict)


@pytest.fixture
def compacting_broker(tmp_path: Path, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    broker = LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths)
    properties = (("log.cleaner.backoff.ms", "100"),)
    with LocalBroker(dataclasses.replace(broker.config, properties=properties), kafka_jar_paths) as running:
        yield running


def compact(broker: LocalBroker, topic: str) -> None:
    """Make a topic compacted, beginning with the next records."""
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.001"}
    changes = [ConfigEntry(*item, incremental_operation=AlterConfigOpType.SET) for item in settings.items()]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)


def run_compacted_audit(stream: AuditedStream, folder: Path) -> AuditReport:
    return run_audit(dataclasses.replace(stream.scope(folder), compacted_topics=[stream.topic]), Sample())


def list_remaining_offsets(stream: AuditedStream) -> list[tuple[int, int]]:
    """List the archived records that are still in the topic."""
    topic_view = TopicView(stream.scope(stream.folder), stream.topic)
    records = (
        topic_view.topic_source.read_records(topic_view.to_ranges(topic_view.shared_bounds()))
        .select("partition", "offset")
        .toArrow()
    )
    return [(row["partition"], row["offset"]) for row in records.to_pylist()]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_compacted_topic_passes_and_damage_to_remaining_records_is_found(
    spark: "SparkSession", compacting_broker: LocalBroker, tmp_path: Path
) -> None:
    stream = AuditedStream(spark, compacting_broker, "compacted", tmp_path / "stream")
    stream.run(6_000)
    compact(compacting_broker, stream.topic)
    for more in range(6_001, 6_013):
        stream.feed(more)  # not read: a segment is compacted when another follows
    wait_until(
        lambda: len(list_remaining_offsets(stream)) < 5_000,
        PATIENCE_S,
        "the compaction of the older segments",
    )
    report = run_compacted_audit(stream, stream.folder)
    assert {verdict.check: verdict.summary for verdict in report.verdicts if verdict.state != "passed"} == {}
    without_archive = stream.copy("without an archive")
    for table in ("raw/compacted", "ledger/archive-compacted"):
        shutil.rmtree(without_archive / "warehouse" / table)
    state_by_check = find_states(run_compacted_audit(stream, without_archive))
    assert {check: state for check, state in state_by_check.items() if state != "passed"} == dict.fromkeys(
        ("archive", "reading", "results"), "unproven"
    )
    edited = stream.copy("edited")
    last = max(offset for partition, offset in list_remaining_offsets(stream) if partition == 2)
    DeltaTable(edited / "warehouse/raw/compacted").update(
        {"value": "key"}, predicate=f'partition = 2 AND "offset" = {last}'
    )
    assert str(run_compacted_audit(stream, edited).first_difference).startswith(
        f"compacted/2 offset {last}: its value differs"
    )
