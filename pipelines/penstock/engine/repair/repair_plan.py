"""Finds what does not fit together in the files of a stream, and how the stream can resume.

The journal may have lost its last batches while the tables have them, or a file of the journal, the state or the
checkpoint may be damaged. The stream can resume from its newest batch that is whole, if each table can be restored
to that batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.engine.batch.committed_state import find_state_folder
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.open_sinks import open_sinks_to_commit
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import DamagedEntryError, JournalError
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.kafka.checkpoint_offsets import read_end_offsets
from penstock.engine.state.sorted_run import open_run
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import file_size, is_delta_table, open_delta_table
from penstock.engine.stream_folders import CHECKPOINT_FOLDER, list_checkpoints, parse_checkpoint_epoch
from penstock.engine.tables.log_recovery import recover_log
from penstock.engine.tables.staged_target import StagedTarget
from penstock.engine.tables.table_change import DataFile, TableChange
from penstock.engine.tables.table_paths import ERASURES_FOLDER, list_owned_paths, list_quarantine_paths
from penstock.engine.tables.table_takeover import to_data_file


@dataclass(frozen=True)
class RepairTarget:
    """The stream to repair: its definition, its folder, and where its tables are."""

    plan: Plan
    directory: Path
    warehouse: StoragePath
    client_config: dict[str, str]

    @property
    def journal(self) -> BatchJournal:
        """The journal of the stream."""
        return BatchJournal(self.directory / "journal")


@dataclass(frozen=True)
class RepairPlan:
    """What is wrong, and what a repair does about it. Without problems there is nothing to do."""

    problems: Sequence[str]
    last_whole: BatchOutcome | None
    """The batch from which the stream resumes; None if there is none."""
    entries_to_move: Sequence[Path]
    """Entries of the journal that are damaged, or that follow that batch."""
    changes: dict[str, TableChange]
    """The changes that take each table back to that batch."""
    newest_batch: int
    blockers: Sequence[str]
    """What a repair cannot undo."""


def plan_repair(target: RepairTarget) -> RepairPlan:
    """Find what does not fit together. Changes nothing but torn ends of table logs, as each start does."""
    problems: list[str] = []
    blockers: list[str] = []
    whole, aside = _find_last_whole(target, problems)
    problems += [] if whole is None else _find_checkpoint_problems(target.directory, whole)
    last_batch = -1 if whole is None else whole.batch_id
    newest_batch = max([last_batch, *(int(path.name.split(".")[0]) for path in aside)])
    changes: dict[str, TableChange] = {}
    shared_paths = list_quarantine_paths(target.plan)
    for path in [*list_owned_paths(target.plan), *shared_paths, f"{ERASURES_FOLDER}/{target.plan.name}"]:
        table = target.warehouse / path
        try:
            table_batch = _read_last_batch(table, target.plan.name)
            if table_batch <= last_batch:
                continue
            newest_batch = max(newest_batch, table_batch)
            problems.append(f"{path} has batch {table_batch}, after the last whole batch {last_batch}")
            if path.startswith(ERASURES_FOLDER):
                blockers.append("a key was erased after that batch, and would come back")
            else:
                prefix = f"{target.plan.name}-" if path in shared_paths else ""
                changes[path] = _find_change_back(table, target.plan.name, last_batch, prefix)
        except JournalError as error:
            problems.append(str(error))
            blockers.append(f"{path} cannot be restored to batch {last_batch}")
    blockers += _find_sinks_ahead(target, last_batch)
    if whole is None and (problems or newest_batch >= 0):
        blockers.append("the journal has no batch that is whole")
    return RepairPlan(problems, whole, aside, changes, newest_batch, blockers)


def _find_last_whole(target: RepairTarget, problems: list[str]) -> tuple[BatchOutcome | None, list[Path]]:
    """Return the newest outcome that is whole with its state, and the entries that are damaged or after it."""
    journal = target.journal
    folder = journal.directory
    whole: BatchOutcome | None = None
    aside: list[Path] = []
    for path in sorted(folder.glob("*.outcome.json"), reverse=True):
        try:
            outcome = journal.read_outcome(int(path.name.split(".")[0]))
            if whole is None:
                _check_state_files(outcome, target.directory)
                whole = outcome
        except JournalError as error:
            problems.append(str(error))
            aside.append(path)
    last_batch = -1 if whole is None else whole.batch_id
    aside += [
        path
        for kind in ("intent", "excluded")
        for path in sorted(folder.glob(f"*.{kind}.json"))
        if int(path.name.split(".")[0]) > last_batch
    ]
    return whole, aside


def _find_checkpoint_problems(directory: Path, whole: BatchOutcome) -> Iterator[str]:
    """Yield why Spark cannot continue after a batch; a repair makes it start anew at the end of the batch."""
    if whole.spark_batch is not None:
        checkpoints = sorted(list_checkpoints(directory), key=parse_checkpoint_epoch)
        try:
            read_end_offsets(
                checkpoints[-1] if checkpoints else directory / CHECKPOINT_FOLDER, whole.spark_batch
            )
        except JournalError as error:
            yield str(error)


def _check_state_files(outcome: BatchOutcome, directory: Path) -> None:
    for key, names in outcome.state_files.items():
        for name in names:
            path = directory / find_state_folder(key) / name
            try:
                open_run(path)
            except FileNotFoundError as error:
                raise DamagedEntryError(path, "is missing") from error


def _read_last_batch(table: StoragePath, application: str) -> int:
    if not is_delta_table(table):
        return -1
    if isinstance(table, Path):
        recover_log(table, application)
    try:
        version = open_delta_table(table).transaction_version(application)
    except DeltaError as error:
        raise DamagedEntryError(table, f"cannot be opened ({str(error).splitlines()[0]})") from error
    return -1 if version is None else version


def _find_change_back(table: StoragePath, application: str, batch_id: int, prefix: str) -> TableChange:
    """Return the change that gives a table the files that it had after a batch.

    In a table of several streams, only files of this one change: their names start with `prefix`.
    """
    current = open_delta_table(table)
    version = current.version()
    try:
        former = current
        while (last := former.transaction_version(application)) is not None and last > batch_id:
            version -= 1
            former = open_delta_table(table, version)
    except (DeltaError, OSError) as error:
        raise DamagedEntryError(table, f"has no version of batch {batch_id} any more") from error
    files, former_files = (
        {file.path: file for file in _list_files(version) if file.path.startswith(prefix)}
        for version in (current, former)
    )
    adds = [file for path, file in former_files.items() if path not in files]
    for file in adds:
        if file_size(table / file.path) != file.size:
            raise DamagedEntryError(table / file.path, "was removed by maintenance, or is damaged")
    return TableChange(adds, [path for path in files if path not in former_files])


def _list_files(table: DeltaTable) -> Iterator[DataFile]:
    return (to_data_file(file) for file in pa.table(table.get_add_actions(flatten=True)).to_pylist())


def _find_sinks_ahead(target: RepairTarget, last_batch: int) -> Iterator[str]:
    """Yield what was written outside of Delta tables after the last whole batch."""
    for path, sink in open_sinks_to_commit(target.plan, target.warehouse, target.client_config).items():
        if isinstance(sink, StagedTarget) and (sink_batch := sink.read_last_batch()) > last_batch:
            yield f"{path} has batch {sink_batch} already, which cannot be undone"
