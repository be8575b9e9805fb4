"""Erases a key: writes the state without it, commits it like a batch, and removes the files that held it.

No host may write the stream meanwhile. A kill before the commit leaves the state as it was. After the commit, the
same request finishes the rest and counts nothing twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from penstock.engine import storage
from penstock.engine.batch.batch_sync import sync_named_files
from penstock.engine.batch.commit_recovery import finish_commits
from penstock.engine.batch.erasure_account import (
    ERASURES_SCHEMA,
    ErasureAccount,
    build_account_rows,
    digest_key,
)
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.state_inspection import match_key
from penstock.engine.errors import ErasureError
from penstock.engine.plan.stages import Plan
from penstock.engine.state import sorted_run
from penstock.engine.state.file_names import new_run_name
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_documentation import document_table
from penstock.engine.tables.table_owner import TableClaim
from penstock.engine.tables.table_paths import ERASURES_FOLDER

ERASE_KIND = "erase"


@dataclass(frozen=True)
class ErasureRequest:
    """The key to erase, by field as text; who requested it, and when (milliseconds)."""

    key: Mapping[str, str]
    requested_by: str
    requested_at_ms: int


@dataclass(frozen=True)
class ErasureTarget:
    """The folders and tables of a stream."""

    stream: str
    directory: Path
    warehouse: storage.StoragePath
    client_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The configuration of Kafka clients, for committed panes that are not published yet."""
    claim: TableClaim | None = None
    """The claim on the stream's tables."""

    @property
    def journal(self) -> BatchJournal:
        """The stream's journal."""
        return BatchJournal(self.directory / "journal")

    @property
    def erasures_table(self) -> LogTable:
        """The table of erasure accounts."""
        path = self.warehouse / ERASURES_FOLDER / self.stream
        return LogTable(path, ERASURES_SCHEMA, self.stream, document_table(ERASURES_FOLDER))


def find_stages_with_key(plan: Plan, key: Mapping[str, str]) -> dict[str, bool]:
    """Return for each stage whether it has all fields of the key. Raises ErasureError if none has."""
    has_key_by_stage = {stage.name: {*key} <= {*stage.key} for stage in plan.stages}
    if not key or not any(has_key_by_stage.values()):
        available_fields = sorted({name for stage in plan.stages for name in stage.key})
        requested_fields = ", ".join(key) or "nothing"
        raise ErasureError(
            plan.name,
            f"no stage has {requested_fields} in its key",
            f"Name one or more of: {', '.join(available_fields) or 'no fields'}",
        )
    return has_key_by_stage


def erase_key_state(
    target: ErasureTarget, plan: Plan, request: ErasureRequest, epoch: int
) -> tuple[BatchOutcome, ErasureAccount]:
    """Erase a key from the state. Return the batch and its account; a repeated call returns the same."""
    has_key_by_stage = find_stages_with_key(plan, request.key)
    journal = target.journal
    last_outcome = journal.read_last_outcome()
    if last_outcome is None:
        raise ErasureError(plan.name, "it has no state yet", "Start it first, or try again in a moment")
    key_digest = digest_key(plan.name, request.key)
    if (
        last_outcome.kind != ERASE_KIND
        or last_outcome.erased is None
        or last_outcome.erased.key_digest != key_digest
    ):
        finish_commits(last_outcome, plan, target.warehouse, target.client_config, target.claim)
        erasure = _prepare_outcome(target, last_outcome, has_key_by_stage, request, epoch)
        sync_named_files(erasure, target.directory, target.warehouse)
        last_outcome = journal.commit_outcome(erasure)
    assert last_outcome.erased is not None, "another writer committed this batch"
    finish_commits(last_outcome, plan, target.warehouse, target.client_config, target.claim)
    _forget_history(target, last_outcome)
    return last_outcome, last_outcome.erased


def _prepare_outcome(
    target: ErasureTarget,
    last_outcome: BatchOutcome,
    has_key_by_stage: Mapping[str, bool],
    request: ErasureRequest,
    epoch: int,
) -> BatchOutcome:
    batch_id, clock = last_outcome.batch_id + 1, max(last_outcome.clock, request.requested_at_ms)
    files, windows = dict(last_outcome.state_files), dict[str, int | None]()
    for stage, has_key in has_key_by_stage.items():
        windows[stage] = None
        if has_key:
            folder = target.directory / "state" / stage
            files[stage], windows[stage] = _rewrite_state(
                folder, last_outcome.state_files.get(stage, ()), request.key, batch_id
            )
    erasure = ErasureAccount(
        tuple(sorted(request.key)), digest_key(target.stream, request.key), request.requested_by, windows
    )
    change = target.erasures_table.write(build_account_rows(erasure, batch_id, clock), batch_id, clock)
    return replace(
        last_outcome,
        batch_id=batch_id,
        kind=ERASE_KIND,
        clock=clock,
        epoch=epoch,
        state_files=files,
        changes={f"{ERASURES_FOLDER}/{target.stream}": change},
        accounts=(),
        panes={},
        durations_ms={},
        lag_records=0,
        archived=0,
        state_rows=_count_state_rows(target.directory, files),
        state_sizes={
            stage: _measure_stage(target.directory / "state" / stage, files.get(stage, ()))
            for stage in has_key_by_stage
        },
        erased=erasure,
        committed_at_ms=request.requested_at_ms,
    )


def _rewrite_state(
    folder: Path, names: Sequence[str], key: Mapping[str, str], batch_id: int
) -> tuple[list[str], int]:
    """Write one file with the current rows of others, without a key; return it and the key's number of rows.

    It is written even if the key has no current row: older files may hold superseded rows of it.
    """
    if not names:
        return [], 0
    rows = sorted_run.SortedRun(
        sorted_run.merge_runs([sorted_run.open_run(folder / name) for name in names], includes_oldest=True)
    ).table
    is_erased = match_key(rows, key)
    path = folder / new_run_name(batch_id)
    sorted_run.write_run(sorted_run.build_run_table(rows.filter(pc.invert(is_erased))), path)
    return [path.name], int(pc.sum(is_erased).as_py() or 0)


def _forget_history(target: ErasureTarget, last_outcome: BatchOutcome) -> None:
    """Remove the earlier batches, and the files that only they reference: these hold the key."""
    target.journal.forget_before(last_outcome.batch_id)
    for stage, names in last_outcome.state_files.items():
        if stage.startswith("/"):  # ids of records are hashes, and reveal no key
            continue
        folder = target.directory / "state" / stage
        for path in [*folder.glob("run-*"), *folder.glob("*.partial")]:
            if path.name not in names:
                path.unlink()


def _measure_stage(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the size of a stage's state; see `BatchOutcome.state_sizes`."""
    rows = sum(len(sorted_run.open_run(folder / name)) for name in names)
    return {"rows": rows, "bytes": sum((folder / name).stat().st_size for name in names)}


def _count_state_rows(directory: Path, files: Mapping[str, Sequence[str]]) -> int:
    """Return the number of rows of the state, superseded ones included; see `BatchOutcome.state_rows`."""
    folders = {name: directory / ("ids" if name.startswith("/") else f"state/{name}") for name in files}
    return sum(
        len(sorted_run.open_run(folders[name] / file)) for name, names in files.items() for file in names
    )
