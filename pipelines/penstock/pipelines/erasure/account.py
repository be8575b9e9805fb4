"""What is written of an erasure: who asked, when, of which key, and how much went; never the key itself."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import pyarrow as pa

from penstock.pipelines.tables.columns import TIMESTAMP, timestamps

FOLDER = "erasures"

ERASURES = pa.schema(
    [
        pa.field("stage", pa.string()),
        pa.field("fields", pa.string()),
        pa.field("key_digest", pa.string()),
        pa.field("asked_by", pa.string()),
        pa.field("windows", pa.int64()),
        pa.field("rewritten", pa.bool_()),
        pa.field("batch_id", pa.int64()),
        pa.field("batch_clock", TIMESTAMP),
    ]
)
"""A row for each stage: how many windows (or keys of a function with a memory) it had of the key.

A stage that does not know the fields of the key keeps what it computed over all keys; it was not `rewritten`.
"""


@dataclass(frozen=True)
class Erased:
    """What a batch erased, by stage; None for a stage without these fields in its key."""

    fields: tuple[str, ...]
    key_digest: str
    asked_by: str
    windows: Mapping[str, int | None]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    @property
    def total(self) -> int:
        """How many windows went, over all stages."""
        return sum(count or 0 for count in self.windows.values())


def erased_from(data: Mapping[str, Any]) -> Erased:
    """Read it back."""
    return Erased(**{**data, "fields": tuple(data["fields"])})


def digest(stream: str, key: Mapping[str, str]) -> str:
    """What stands for a key: whoever knows it can find its account, and nobody reads it there.

    A key that can be guessed can be found by trying all guesses.
    """
    told = msgspec.json.encode([stream, sorted(key.items())])
    return hashlib.sha256(told).hexdigest()[:32]


def account(erased: Erased, batch_id: int, clock: int) -> pa.Table:
    """The rows of the table."""
    count = len(erased.windows)
    columns = [
        pa.array(erased.windows, pa.string()),
        pa.array([", ".join(erased.fields)] * count, pa.string()),
        pa.array([erased.key_digest] * count),
        pa.array([erased.asked_by] * count, pa.string()),
        pa.array([each or 0 for each in erased.windows.values()], pa.int64()),
        pa.array([each is not None for each in erased.windows.values()], pa.bool_()),
        pa.array([batch_id] * count, pa.int64()),
        timestamps(pa.chunked_array([pa.array([clock] * count, pa.int64())])),
    ]
    return pa.table(columns, schema=ERASURES)
