"""What a batch did, written down before its tables are told: from here on it cannot come out otherwise."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.pipelines.batch.inputs import Reached
from penstock.pipelines.batch.intent import Range, range_at
from penstock.pipelines.erasure.account import Erased, erased_from
from penstock.pipelines.fold.watermark import Mark, Watermark
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.tables.change import Change, change_from

FORMAT = 2
"""The version of the state and of this file; a host refuses one that it does not know."""


@dataclass(frozen=True)
class Outcome:
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
    changes: Mapping[str, Change]
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
    erased: Erased | None = None
    """The account of a key that was taken out of the state, where that is what the batch did."""

    @property
    def reached(self) -> Reached:
        """How far the stream and each of its inputs came."""
        return Reached(self.watermark, self.inputs)

    @property
    def read_up_to(self) -> list[Range]:
        """For each partition an empty range at the offset up to which it was read."""
        return [range_at(name, end) for name, end in self.ends.items()]

    @property
    def rows(self) -> int:
        """Rows that the batch writes, over all tables."""
        return sum(file.rows for change in self.changes.values() for file in change.adds)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"format": FORMAT, **asdict(self)}


def outcome_from(data: Mapping[str, Any]) -> Outcome:
    """Read an outcome back."""
    rest = {key: value for key, value in data.items() if key != "format"}
    marks = {name: Mark(**mark) for name, mark in (data["watermark"]["marks"] or {}).items()}
    return Outcome(
        **{
            **rest,
            "watermark": Watermark(data["watermark"]["value"], marks),
            "changes": {table: change_from(change) for table, change in data["changes"].items()},
            "erased": erased_from(data["erased"]) if data.get("erased") else None,
            "accounts": tuple(PartitionAccount(**account) for account in data["accounts"]),
        }
    )
