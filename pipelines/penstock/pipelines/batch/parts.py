"""A batch folded part by part, wherever that is: what a part is given, and what it gives back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, Weighed, windowed
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.identity import key_hashes, window_hashes
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import Outcome
from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import Ints, Mask
from penstock.pipelines.state.names import is_for, run_name
from penstock.pipelines.state.parts import parts_of

PLACE = ("_topic", "_partition")


@dataclass(frozen=True)
class PartFolded:
    """What came of one part: the file of its changed state, if any, and what the fold says."""

    run: str | None
    panes: pa.Table
    restated: Mask
    missed: pa.Table
    late: pa.Table
    """How many records of each partition were refused by all of their windows: topic, partition, count."""


@dataclass(frozen=True)
class PartTask:
    """All that is needed to fold any part of a batch: it can be sent to wherever the state's folder is."""

    stage: ReadyStage
    folder: Path
    files: Sequence[str]
    moment: Moment
    batch_id: int

    def parts(self, partials: pa.Table) -> Ints:
        """The part to which each partial belongs."""
        return parts_of(_groups_hi(self.stage, partials))

    def fold(self, part: int, partials: pa.Table) -> PartFolded:
        """Fold the partials of one part, all of which are given, and write its changed state."""
        names = [name for name in self.files if is_for(name, part)]
        tree = trees.opened(self.stage.state_columns, self.folder, names, part)
        good = windowed(partials)
        outcome = fold(self.stage, tree, good, self.moment)
        name = run_name(self.batch_id, part)
        if outcome.changed.num_rows:
            runs_of.write(runs_of.build(outcome.changed.cast(tree.schema)), self.folder / name)
        late = good.filter(pa.array(outcome.late)).group_by(list(PLACE)).aggregate([("_counted", "sum")])
        return PartFolded(
            name if outcome.changed.num_rows else None, outcome.panes, outcome.restated, outcome.missed, late
        )


class Spreader(Protocol):
    """Folds the parts of a batch side by side."""

    def fold(self, task: PartTask, partials: "pa.Table | Weighed") -> Iterable[PartFolded]:
        """Fold every part, also those without partials: something may be due in them."""


@dataclass(frozen=True)
class SpreadOutcome:
    """A batch that was folded in parts: the files of the changed state, and the rest as of one that was not."""

    runs: Sequence[str]
    outcome: Outcome
    late: Mapping[tuple[str, int], int]


def gathered(stage: ReadyStage, parts: Iterable[PartFolded]) -> SpreadOutcome:
    """Put together what came of all parts. The rows of a part stay together; parts have no order among them."""
    folded = list(parts)
    late: dict[tuple[str, int], int] = {}
    for part in folded:
        columns = (part.late.column(name).to_pylist() for name in (*PLACE, "_counted_sum"))
        for topic, partition, count in zip(*columns, strict=True):
            late[topic, partition] = late.get((topic, partition), 0) + count
    outcome = Outcome(
        pa.schema([]).empty_table(),
        pa.concat_tables([stage.pane_columns.empty_table(), *(part.panes for part in folded)]),
        np.empty(0, bool),
        pa.concat_tables([part.missed for part in folded]),
        np.concatenate([part.restated for part in folded]),
    )
    return SpreadOutcome([part.run for part in folded if part.run is not None], outcome, late)


def told_apart(summary: pa.Table, late: Mapping[tuple[str, int], int]) -> tuple[pa.Table, Mask]:
    """The summary as partials of which some were refused: for each partition those that were not, and those."""
    rows = summary.to_pylist()
    for row in rows:
        if row["_set_aside"] is None:
            row["_counted"] -= late.get((row["_topic"], row["_partition"]), 0)
    refused = [
        dict(zip(ACCOUNT_COLUMNS.names, (topic, partition, None, count, None), strict=True))
        for (topic, partition), count in late.items()
    ]
    table = pa.Table.from_pylist([*rows, *refused], schema=ACCOUNT_COLUMNS)
    good = sum(row["_set_aside"] is None for row in rows)
    return table, np.arange(good + len(refused)) >= good


def encoded(part: PartFolded) -> bytes:
    """What came of a part as bytes, to be sent."""
    tables = {"panes": part.panes, "missed": part.missed, "late": part.late}
    sent = {name: _stream(table) for name, table in tables.items()}
    return msgspec.msgpack.encode({**sent, "run": part.run, "restated": part.restated.tobytes()})


def decoded(sent: bytes) -> PartFolded:
    """The same from bytes."""
    told = msgspec.msgpack.decode(sent)
    tables = {name: pa.ipc.open_stream(told[name]).read_all() for name in ("panes", "missed", "late")}
    return PartFolded(
        told["run"], tables["panes"], np.frombuffer(told["restated"], bool), tables["missed"], tables["late"]
    )


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _groups_hi(stage: ReadyStage, partials: pa.Table) -> np.ndarray:
    """The hash by which the state finds what a partial is about."""
    keys = key_hashes([partials.column(field.name) for field in stage.key], partials.num_rows)
    if stage.merges or stage.in_order:
        return keys.hi
    start, end = (numpy_column(partials.column(f"window_{bound}")) for bound in ("start", "end"))
    return window_hashes(keys, start, end).hi
