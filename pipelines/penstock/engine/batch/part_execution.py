"""Processes a batch in parts, here or on executors: the task of a part and its result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, RemotePartials, select_window_partials
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.group_hashes import hash_keys, hash_windows
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.state import sorted_run, state_tree
from penstock.engine.state.file_names import is_for_part, new_run_name
from penstock.engine.state.hash_parts import assign_hash_parts
from penstock.engine.state.header_columns import BoolArray, Int64Array

PARTITION_COLUMNS = ("_topic", "_partition")


@dataclass(frozen=True)
class PartResult:
    """The result of one part: the file of its changed state, if any, and the output of the processing."""

    run: str | None
    panes: pa.Table
    restated: BoolArray
    missed: pa.Table
    late: pa.Table
    """How many records of each partition all of their windows refused: topic, partition, count."""


@dataclass(frozen=True)
class PartTask:
    """Everything needed to process any part of a batch. It can be sent wherever the state's folder is."""

    stage: CompiledStage
    folder: Path
    files: Sequence[str]
    batch_time: BatchTime
    batch_id: int

    def assign_parts(self, partials: pa.Table) -> Int64Array:
        """Return the part of each partial."""
        return assign_hash_parts(_group_hashes(self.stage, partials))

    def process_part(self, part: int, partials: pa.Table) -> PartResult:
        """Process all partials of one part, and write its changed state."""
        part_files = [run_file for run_file in self.files if is_for_part(run_file, part)]
        tree = state_tree.open_tree(self.stage.state_schema, self.folder, part_files, part)
        window_partials = select_window_partials(partials)
        outcome = process_batch(self.stage, tree, window_partials, self.batch_time)
        run_file = new_run_name(self.batch_id, part)
        if outcome.changed_state.num_rows:
            sorted_run.write_run(
                sorted_run.build_run_table(outcome.changed_state.cast(tree.schema)), self.folder / run_file
            )
        late_counts = (
            window_partials.filter(pa.array(outcome.is_late))
            .group_by(list(PARTITION_COLUMNS))
            .aggregate([("_counted", "sum")])
        )
        return PartResult(
            run_file if outcome.changed_state.num_rows else None,
            outcome.panes,
            outcome.is_restated,
            outcome.late_rows,
            late_counts,
        )


class PartExecutor(Protocol):
    """Processes the parts of a batch in parallel."""

    def process_parts(self, task: PartTask, partials: "pa.Table | RemotePartials") -> Iterable[PartResult]:
        """Process every part, also those without partials: timers may be due in them."""


@dataclass(frozen=True)
class CombinedParts:
    """The result of a batch that was processed in parts: its changed state files, and the rest as one result."""

    runs: Sequence[str]
    outcome: StageResult
    late: Mapping[tuple[str, int], int]


def combine_parts(stage: CompiledStage, parts: Iterable[PartResult]) -> CombinedParts:
    """Combine the results of all parts. The rows of a part stay together; parts are in no order."""
    part_results = list(parts)
    late_counts: dict[tuple[str, int], int] = {}
    for part in part_results:
        columns = (part.late.column(name).to_pylist() for name in (*PARTITION_COLUMNS, "_counted_sum"))
        for topic, partition, count in zip(*columns, strict=True):
            late_counts[topic, partition] = late_counts.get((topic, partition), 0) + count
    outcome = StageResult(
        pa.schema([]).empty_table(),
        pa.concat_tables([stage.pane_schema.empty_table(), *(part.panes for part in part_results)]),
        np.empty(0, bool),
        pa.concat_tables([part.missed for part in part_results]),
        np.concatenate([part.restated for part in part_results]),
    )
    return CombinedParts([part.run for part in part_results if part.run is not None], outcome, late_counts)


def split_refused(
    summary: pa.Table, late_counts: Mapping[tuple[str, int], int]
) -> tuple[pa.Table, BoolArray]:
    """Turn the summary into accepted and refused partials, for each partition; the mask marks the refused ones."""
    rows = _sum_by_partition(summary).to_pylist()
    for row in rows:
        if row["_fate"] is None:
            row["_counted"] -= late_counts.get((row["_topic"], row["_partition"]), 0)
    refused_rows = [
        dict(zip(ACCOUNT_SCHEMA.names, (topic, partition, None, count, None), strict=True))
        for (topic, partition), count in late_counts.items()
    ]
    table = pa.Table.from_pylist([*rows, *refused_rows], schema=ACCOUNT_SCHEMA)
    accepted_count = sum(row["_fate"] is None for row in rows)
    return table, np.arange(accepted_count + len(refused_rows)) >= accepted_count


def _sum_by_partition(summary: pa.Table) -> pa.Table:
    """Return one row per partition and fate: partials on the driver have one per key and window."""
    group_columns = [*PARTITION_COLUMNS, "_fate"]
    sums = (
        summary.select(ACCOUNT_SCHEMA.names)
        .group_by(group_columns)
        .aggregate([("_counted", "sum"), ("_newest", "max")])
    )
    renamed = sums.rename_columns([*group_columns, "_counted", "_newest"])
    return renamed.select(ACCOUNT_SCHEMA.names).cast(ACCOUNT_SCHEMA)


def encode_part(part: PartResult) -> bytes:
    """Encode the result of a part as bytes."""
    tables = {"panes": part.panes, "missed": part.missed, "late": part.late}
    payload = {name: _to_ipc_bytes(table) for name, table in tables.items()}
    return msgspec.msgpack.encode({**payload, "run": part.run, "restated": part.restated.tobytes()})


def decode_part(payload: bytes) -> PartResult:
    """Decode the result of a part."""
    unpacked = msgspec.msgpack.decode(payload)
    tables = {name: pa.ipc.open_stream(unpacked[name]).read_all() for name in ("panes", "missed", "late")}
    return PartResult(
        unpacked["run"],
        tables["panes"],
        np.frombuffer(unpacked["restated"], bool),
        tables["missed"],
        tables["late"],
    )


def _to_ipc_bytes(table: pa.Table) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return bytes(buffer.getvalue())


def _group_hashes(stage: CompiledStage, partials: pa.Table) -> np.ndarray:
    """Hash each partial's group as the state does."""
    keys = hash_keys([partials.column(field.name) for field in stage.key], partials.num_rows)
    if stage.has_merging_windows or stage.is_ordered:
        return keys.hi
    start, end = (to_numpy(partials.column(f"window_{bound}")) for bound in ("start", "end"))
    return hash_windows(keys, start, end).hi
