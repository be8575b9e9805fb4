"""The account of an erasure: who requested it, when, and how much was erased; never the key itself."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import pyarrow as pa

from penstock.engine.tables.timestamps import TIMESTAMP_TYPE, to_timestamps

ERASURES_SCHEMA = pa.schema(
    [
        pa.field("stage", pa.string()),
        pa.field("fields", pa.string()),
        pa.field("key_digest", pa.string()),
        pa.field("asked_by", pa.string()),
        pa.field("windows", pa.int64()),
        pa.field("rewritten", pa.bool_()),
        pa.field("batch_id", pa.int64()),
        pa.field("batch_clock", TIMESTAMP_TYPE),
    ]
)
"""A row for each stage: how many windows (or keys of a stateful function) of the key it had.

A stage without the fields of the key keeps what it computed over all keys; it was not `rewritten`.
"""


@dataclass(frozen=True)
class ErasureAccount:
    """What a batch erased, by stage; None for a stage without these fields in its key."""

    fields: tuple[str, ...]
    key_digest: str
    asked_by: str
    windows: Mapping[str, int | None]

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data."""
        return asdict(self)

    @property
    def total_windows(self) -> int:
        """The number of erased windows, over all stages."""
        return sum(count or 0 for count in self.windows.values())


def parse_erasure_account(plain_account: Mapping[str, Any]) -> ErasureAccount:
    """Parse an account."""
    return ErasureAccount(**{**plain_account, "fields": tuple(plain_account["fields"])})


def digest_key(stream: str, key: Mapping[str, str]) -> str:
    """Return a digest that identifies a key: a holder of the key finds its account, but not the reverse.

    Not promised: a key that can be guessed can be found by trying all guesses.
    """
    payload = msgspec.json.encode([stream, sorted(key.items())])
    return hashlib.sha256(payload).hexdigest()[:32]


def build_account_rows(erasure: ErasureAccount, batch_id: int, clock: int) -> pa.Table:
    """Return the rows of the erasures table."""
    stage_count = len(erasure.windows)
    columns = [
        pa.array(erasure.windows, pa.string()),
        pa.array([", ".join(erasure.fields)] * stage_count, pa.string()),
        pa.array([erasure.key_digest] * stage_count),
        pa.array([erasure.asked_by] * stage_count, pa.string()),
        pa.array([window_count or 0 for window_count in erasure.windows.values()], pa.int64()),
        pa.array([window_count is not None for window_count in erasure.windows.values()], pa.bool_()),
        pa.array([batch_id] * stage_count, pa.int64()),
        to_timestamps(pa.chunked_array([pa.array([clock] * stage_count, pa.int64())])),
    ]
    return pa.table(columns, schema=ERASURES_SCHEMA)
