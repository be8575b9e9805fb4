"""What a batch did, written down before its tables are told: from here on it cannot come out otherwise."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.erasure_account import ErasureAccount, parse_erasure_account
from penstock.engine.batch.input_watermarks import StreamWatermarks
from penstock.engine.batch.intent import OffsetRange, empty_range_at
from penstock.engine.operators.watermark import PartitionProgress, Watermark
from penstock.engine.tables.table_change import TableChange, parse_table_change

OUTCOME_FORMAT = 2
"""The version of the state and of this file; a host refuses one that it does not know."""


@dataclass(frozen=True)
class BatchOutcome:
    """The state after a batch, by the files that hold it; and its rows, by the files that wait to be committed."""

    batch_id: int
    kind: str
    clock: int
    epoch: int
    spark_batch: int | None
    """The newest batch of Spark's that is in the state; a tick carries on that of the batch before."""
    watermark: Watermark
    ends: Mapping[str, int]
    """For each partition, by name, the offset up to which it was read."""
    state_files: Mapping[str, list[str]]
    changes: Mapping[str, TableChange]
    accounts: tuple[PartitionAccount, ...] = ()
    panes: Mapping[str, int] = field(default_factory=dict)
    lag_records: int = 0
    state_rows: int = 0
    state_sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of each stage the `rows` of its state, superseded ones included, and the `bytes` of its files."""
    durations_ms: Mapping[str, float] = field(default_factory=dict)
    plan: str = ""
    """The fingerprint of the plan that made the state."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """The watermark of each input, by its topic; that of the stream is the lowest of them."""
    placement: str = "driver"
    """Where it was folded: on the driver, or in the executors."""
    archived: int = 0
    """Records that were kept as they are, without panes: what an archive does."""
    erased: ErasureAccount | None = None
    """The account of a key that was taken out of the state, where that is what the batch did."""

    @property
    def watermarks(self) -> StreamWatermarks:
        """How far the stream and each of its inputs came."""
        return StreamWatermarks(self.watermark, self.inputs)

    @property
    def end_ranges(self) -> list[OffsetRange]:
        """For each partition an empty range at the offset up to which it was read."""
        return [empty_range_at(name, end) for name, end in self.ends.items()]

    @property
    def rows(self) -> int:
        """Rows that the batch writes, over all tables."""
        return sum(file.rows for change in self.changes.values() for file in change.adds)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"format": OUTCOME_FORMAT, **asdict(self)}


def parse_outcome(plain_outcome: Mapping[str, Any]) -> BatchOutcome:
    """Read an outcome back."""
    plain_fields = {key: value for key, value in plain_outcome.items() if key != "format"}
    marks = {
        name: PartitionProgress(**mark) for name, mark in (plain_outcome["watermark"]["marks"] or {}).items()
    }
    return BatchOutcome(
        **{
            **plain_fields,
            "watermark": Watermark(plain_outcome["watermark"]["value"], marks),
            "changes": {
                table: parse_table_change(change) for table, change in plain_outcome["changes"].items()
            },
            "erased": parse_erasure_account(plain_outcome["erased"]) if plain_outcome.get("erased") else None,
            "accounts": tuple(PartitionAccount(**account) for account in plain_outcome["accounts"]),
        }
    )
