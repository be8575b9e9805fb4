"""The records in the quarantine of a topic, each once, whichever streams put it there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.pipelines import store
from penstock.quality.audit.tables import lacking, opened_table
from penstock.quality.errors import DamagedTableError, QuarantineError

COLUMNS = (
    *("partition", "offset", "batch_clock", "arrived"),
    *("key", "value", "reason", "stream", "contract"),
)
"""What is known of a record that is no good."""


class Place(NamedTuple):
    """Where in its topic a record is."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


@dataclass(frozen=True)
class Quarantined:
    """A record as its topic has it, byte for byte, and what was said of it.

    `judges` are the streams that refused it, with the version of the contract by which each did.
    """

    topic: str
    place: Place
    arrived: datetime | None
    key: bytes | None
    value: bytes | None
    reason: str
    judges: tuple[tuple[str, str], ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that refused it."""
        return tuple(stream for stream, _ in self.judges)

    @property
    def contracts(self) -> tuple[str, ...]:
        """The versions of the contract by which it was refused."""
        return tuple(sorted({contract for _, contract in self.judges}))


def quarantined(warehouse: store.Place, topic: str) -> list[Quarantined]:
    """Return the records of a topic's quarantine, in the order of their addresses; none where there is no table."""
    path = warehouse / f"quarantine/{topic}"
    table = opened_table(path)
    if table is None:
        return []
    if found_lacking := lacking(table, COLUMNS):
        raise DamagedTableError(path, found_lacking)
    rows = pa.table(table.to_pyarrow_table())
    order = [(name, "ascending") for name in ("partition", "offset", "batch_clock")]
    return list(_each_once(topic, rows.sort_by(order).to_pylist()))


def parsed_place(text: str) -> Place:
    """Return PARTITION:OFFSET as a place."""
    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise QuarantineError(f"{text!r} is no address: write PARTITION:OFFSET, as in 1:4711")
    return Place(int(partition), int(offset))


def found(records: Iterable[Quarantined], places: Sequence[Place], topic: str) -> list[Quarantined]:
    """Return the records at these places; QuarantineError for one that is not in the quarantine."""
    by_place = {record.place: record for record in records}
    for place in places:
        if place not in by_place:
            raise QuarantineError(
                f"{topic} {place} is not in the quarantine; `penstock quarantine list {topic}` shows what is"
            )
    return [by_place[place] for place in places]


def _each_once(topic: str, rows: Iterable[dict[str, Any]]) -> Iterable[Quarantined]:
    gathered: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        gathered.setdefault(Place(row["partition"], row["offset"]), []).append(row)
    for place, told in gathered.items():
        last = told[-1]
        judges = tuple((row["stream"] or "unknown", row["contract"] or "unknown") for row in told)
        yield Quarantined(topic, place, last["arrived"], last["key"], last["value"], last["reason"], judges)
