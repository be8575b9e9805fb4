"""Erasing a key: the state without it is written, decided like a batch, and what held it is removed.

Nobody else may write the stream meanwhile. Whoever is killed before the decision leaves the state as it was; after
it, the same request done again finishes what is left and counts nothing twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.compute as pc

from penstock.engine import storage
from penstock.engine.batch.commit_recovery import finish_commits
from penstock.engine.batch.erasure_account import (
    ERASURES_FOLDER,
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
from penstock.engine.state import sorted_run as runs_of
from penstock.engine.state.file_names import new_run_name
from penstock.engine.tables.log_table import LogTable

ERASE_KIND = "erase"


@dataclass(frozen=True)
class ErasureRequest:
    """Whose state is to go, by fields of keys given as text, who asked, and when (milliseconds)."""

    key: Mapping[str, str]
    requested_by: str
    requested_at_ms: int


@dataclass(frozen=True)
class ErasureTarget:
    """Where a stream keeps its state, and its tables."""

    stream: str
    directory: Path
    warehouse: storage.StoragePath
    client_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What clients of Kafka are made with, for what was decided and not published yet."""

    @property
    def journal(self) -> BatchJournal:
        """Its journal."""
        return BatchJournal(self.directory / "journal")

    @property
    def erasures_table(self) -> LogTable:
        """The table of accounts."""
        return LogTable(self.warehouse / ERASURES_FOLDER / self.stream, ERASURES_SCHEMA, self.stream)


def find_stages_with_key(plan: Plan, key: Mapping[str, str]) -> dict[str, bool]:
    """Which stages know all fields of the key. ErasureError where none does."""
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
    """Take a key out of the state. Returns the batch, and what it erased; asked again at once, the same."""
    has_key_by_stage = find_stages_with_key(plan, request.key)
    journal = target.journal
    last_outcome = journal.read_last_outcome()
    if last_outcome is None:
        raise ErasureError(plan.name, "it keeps nothing yet", "Start it first, or look again in a moment")
    key_digest = digest_key(plan.name, request.key)
    if (
        last_outcome.kind != ERASE_KIND
        or last_outcome.erased is None
        or last_outcome.erased.key_digest != key_digest
    ):
        finish_commits(last_outcome, plan, target.warehouse, target.client_config)
        last_outcome = journal.commit_outcome(
            _prepare_outcome(target, last_outcome, has_key_by_stage, request, epoch)
        )
    assert last_outcome.erased is not None, "two erased one stream at once, or an erasure and a batch"
    finish_commits(last_outcome, plan, target.warehouse, target.client_config)
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
    )


def _rewrite_state(
    folder: Path, names: Sequence[str], key: Mapping[str, str], batch_id: int
) -> tuple[list[str], int]:
    """One file with all that counts of some, without a key; and how many rows the key had.

    It is written also where the key has no row that counts: older files may hold rows of it that are over.
    """
    if not names:
        return [], 0
    rows = runs_of.SortedRun(
        runs_of.merge_runs([runs_of.open_run(folder / name) for name in names], includes_oldest=True)
    ).table
    is_erased = match_key(rows, key)
    path = folder / new_run_name(batch_id)
    runs_of.write_run(runs_of.build_run_table(rows.filter(pc.invert(is_erased))), path)
    return [path.name], int(pc.sum(is_erased).as_py() or 0)


def _forget_history(target: ErasureTarget, last_outcome: BatchOutcome) -> None:
    """Remove the batches before, and the files that only they name: these hold the key."""
    target.journal.forget_before(last_outcome.batch_id)
    for stage, names in last_outcome.state_files.items():
        if stage.startswith("/"):  # ids of records are hashes, and say nothing of keys
            continue
        folder = target.directory / "state" / stage
        for path in [*folder.glob("run-*"), *folder.glob("*.partial")]:
            if path.name not in names:
                path.unlink()


def _measure_stage(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """How much a stage keeps; see `Outcome.state_sizes`."""
    rows = sum(len(runs_of.open_run(folder / name)) for name in names)
    return {"rows": rows, "bytes": sum((folder / name).stat().st_size for name in names)}


def _count_state_rows(directory: Path, files: Mapping[str, Sequence[str]]) -> int:
    """How many rows the state has, superseded ones included; see `Outcome.state_rows`."""
    folders = {name: directory / ("ids" if name.startswith("/") else f"state/{name}") for name in files}
    return sum(len(runs_of.open_run(folders[name] / file)) for name, names in files.items() for file in names)
