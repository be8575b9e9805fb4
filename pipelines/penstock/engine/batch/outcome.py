"""The outcome of a batch. Once it is in the journal, the batch has exactly this result."""

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
"""The version of the state and of this file; a host refuses any other."""


@dataclass(frozen=True)
class BatchOutcome:
    """The state after a batch and its rows, by the files that hold them."""

    batch_id: int
    kind: str
    clock: int
    epoch: int
    spark_batch: int | None
    """The newest Spark batch in the state; a tick repeats the number of the batch before."""
    watermark: Watermark
    ends: Mapping[str, int]
    """The offset up to which each partition was read, by its name."""
    state_files: Mapping[str, list[str]]
    changes: Mapping[str, TableChange]
    accounts: tuple[PartitionAccount, ...] = ()
    panes: Mapping[str, int] = field(default_factory=dict)
    lag_records: int = 0
    state_rows: int = 0
    state_sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each stage, the `rows` of its state, superseded ones included, and the `bytes` of its files."""
    durations_ms: Mapping[str, float] = field(default_factory=dict)
    plan: str = ""
    """The fingerprint of the plan that wrote the state."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """The watermark of each input, by topic; the stream's is the lowest of them."""
    placement: str = "driver"
    """Where the batch was accepted: `driver` or `executors`."""
    archived: int = 0
    """Records that an archive stored unchanged, without panes."""
    erased: ErasureAccount | None = None
    """The account of the erased key, if the batch is an erasure."""
    committed_at_ms: int | None = None
    """When the batch was computed, just before its commit to the journal; None if 0.1.0 wrote it."""

    @property
    def watermarks(self) -> StreamWatermarks:
        """The watermarks of the stream and of each input."""
        return StreamWatermarks(self.watermark, self.inputs)

    @property
    def end_ranges(self) -> list[OffsetRange]:
        """An empty range at the end offset of each partition."""
        return [empty_range_at(name, end) for name, end in self.ends.items()]

    @property
    def rows(self) -> int:
        """The number of rows that the batch adds, over all tables."""
        return sum(file.rows for change in self.changes.values() for file in change.adds)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data."""
        return {"format": OUTCOME_FORMAT, **asdict(self)}


def parse_outcome(plain_outcome: Mapping[str, Any]) -> BatchOutcome:
    """Parse an outcome."""
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
