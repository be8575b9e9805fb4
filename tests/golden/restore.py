"""Gives a broker the records of a golden home again, and reads the tables of a home for comparison."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Message, Producer
from deltalake import DeltaTable
from tests.golden.home import GoldenHome
from tests.golden.rounds import PARTITIONS, TOPICS
from tests.patience import PATIENCE_S

from penstock.engine.archive.archive_names import archive_name
from penstock.engine.archive.topic_reader import fetch_topic_id

ORIGIN_FILE = "origin.json"
CLOCK_COLUMNS = ("batch_clock", "timestamp", "day", "arrived")
"""Columns with the time of the machine."""
ARCHIVE_BATCH_COLUMNS = ("batch_id",)
"""An archive cuts batches by the clock of the machine."""


def read_origin(root: Path) -> dict[str, Any]:
    """Return what is known of the making of a home."""
    origin: dict[str, Any] = json.loads((root / ORIGIN_FILE).read_text("utf-8"))
    return origin


def restore_topics(home: GoldenHome) -> None:
    """Send the archived records to the new topics of a broker, each to its old offset.

    Kafka gives a new topic an id of its own, and an archive refuses a topic of another id. So the old id is
    replaced in the journals of the archives; this is what an operator does after restoring a lost cluster.
    """
    old_ids = read_origin(home.root)["topic_ids"]
    for topic in TOPICS:
        _send_archived_records(home, topic)
        new_id = fetch_topic_id(home.client, topic)
        for file in (home.root / ".penstock" / "streams" / archive_name(topic) / "journal").iterdir():
            file.write_bytes(file.read_bytes().replace(old_ids[topic].encode(), new_id.encode()))


def _send_archived_records(home: GoldenHome, topic: str) -> None:
    archived = DeltaTable(home.warehouse / "raw" / topic).to_pyarrow_table().to_pylist()
    producer = Producer({**home.client, "enable.idempotence": True})
    delivered: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}

    def note(_error: object, message: Message) -> None:
        delivered[message.partition()].append(message.offset())

    archived.sort(key=lambda row: (row["partition"], row["offset"]))
    for row in archived:
        producer.produce(
            topic,
            row["value"],
            row["key"],
            row["partition"],
            timestamp=int(row["timestamp"].timestamp() * 1000),
            headers=[(header["name"], header["value"]) for header in row["headers"] or ()],
            on_delivery=note,
        )
    assert producer.flush(PATIENCE_S) == 0
    for partition, offsets in delivered.items():
        assert offsets == [row["offset"] for row in archived if row["partition"] == partition], (
            f"{topic}/{partition}"
        )


def read_tables(warehouse: Path) -> dict[str, list[str]]:
    """Return the rows of every table as sorted texts, without the time of the machine."""
    return {name: _comparable_rows(name, table) for name, table in _open_tables(warehouse).items()}


def count_rows(warehouse: Path) -> dict[str, int]:
    """Return the number of rows of every table."""
    return {name: table.num_rows for name, table in _open_tables(warehouse).items()}


def _open_tables(warehouse: Path) -> dict[str, pa.Table]:
    folders = sorted(log.parent for log in warehouse.rglob("_delta_log"))
    return {str(folder.relative_to(warehouse)): DeltaTable(folder).to_pyarrow_table() for folder in folders}


def _comparable_rows(name: str, table: pa.Table) -> list[str]:
    is_archive_ledger = name.startswith("ledger/archive-")
    if is_archive_ledger:  # the ranges of an archive's batches differ, and what they cover does not
        table = table.group_by(["topic", "partition"]).aggregate(
            [("records", "sum"), ("start", "min"), ("end", "max")]
        )
    dropped = CLOCK_COLUMNS + (ARCHIVE_BATCH_COLUMNS if name.startswith("raw/") else ())
    return sorted(map(repr, table.drop_columns([n for n in dropped if n in table.column_names]).to_pylist()))
