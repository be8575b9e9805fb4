"""The journal of a stream: an intent and an outcome for each batch, each written once and never changed.

Both are created under a name that must not exist yet. If two hosts write the same batch, the second one finds what
the first one wrote and continues from that, so both commit the same.

An outcome is on disk when `commit_outcome` returns, if the journal syncs. Everything that it names must be on disk
before: see `batch_sync`. A power cut may lose or tear an intent that no outcome follows; it then counts as absent.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import msgspec

from penstock.core.checksums import format_checksum_line, verify_checksum
from penstock.core.errors import DamagedFileError
from penstock.core.file_sync import sync_folder
from penstock.core.files import write_synced
from penstock.engine.batch.intent import BatchIntent, parse_intent
from penstock.engine.batch.outcome import OUTCOME_FORMAT, BatchOutcome, parse_outcome
from penstock.engine.errors import DamagedEntryError, JournalError

log = logging.getLogger(__name__)

RETAINED_BATCHES = 100
"""How many batches the journal retains."""

EntryKind = Literal["intent", "excluded", "outcome"]


class BatchJournal:
    """The journal in a folder. Holds nothing in memory: every call reads the disk.

    Opening it changes nothing, so anyone may read it while its writer runs.
    """

    def __init__(self, directory: Path, *, syncs: bool = True) -> None:
        self.directory = directory
        self._syncs = syncs

    @classmethod
    def open_for_writing(cls, directory: Path, *, syncs: bool = True) -> "BatchJournal":
        """Open the journal for its only writer: create the folder, and remove what no batch can use.

        These are partial files of a killed writer, and what a power cut left of a batch without an outcome.
        """
        directory.mkdir(parents=True, exist_ok=True)
        for partial_file in directory.glob("*.partial"):
            partial_file.unlink(missing_ok=True)
        journal = cls(directory, syncs=syncs)
        journal._remove_torn_entries()
        return journal

    def read_last_outcome(self) -> BatchOutcome | None:
        """Return the newest committed outcome."""
        batch_ids = self._batch_ids("outcome")
        return self.read_outcome(max(batch_ids)) if batch_ids else None

    def read_outcome(self, batch_id: int) -> BatchOutcome:
        """Return the outcome of a batch, which must exist."""
        return _read_outcome_file(self._entry_path(batch_id, "outcome"))

    def read_intent(self, batch_id: int) -> BatchIntent | None:
        """Return the intent of a batch; None if there is none."""
        path = self._entry_path(batch_id, "intent")
        return parse_intent(_read_json(path)) if path.exists() else None

    def declare_intent(self, intent: BatchIntent) -> BatchIntent:
        """Write an intent; if there is one already, return that one."""
        if self._write_once(self._entry_path(intent.batch_id, "intent"), intent.as_dict()):
            return intent
        return parse_intent(_read_json(self._entry_path(intent.batch_id, "intent")))

    def commit_outcome(self, outcome: BatchOutcome) -> BatchOutcome:
        """Write an outcome; if there is one already, return that one. What it names must be synced before."""
        is_new = self._write_once(self._entry_path(outcome.batch_id, "outcome"), outcome.as_dict())
        if self._syncs:
            self.sync()
        if is_new:
            return outcome
        return self.read_outcome(outcome.batch_id)

    def read_excluded(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the records excluded from a batch."""
        path = self._entry_path(batch_id, "excluded")
        return list(_read_json(path)["records"]) if path.exists() else []

    def record_excluded(self, batch_id: int, records: Sequence[Mapping[str, Any]]) -> None:
        """Write the records excluded from a batch, unless they are written already."""
        self._write_once(self._entry_path(batch_id, "excluded"), {"records": list(records)})

    def count_poison_before(self, batch_id: int) -> int:
        """Return how many poison records the retained batches before this one excluded."""
        records = (
            record
            for earlier_id in self._batch_ids("excluded")
            if earlier_id < batch_id
            for record in self.read_excluded(earlier_id)
        )
        return sum(record.get("kind", "user_code_error") == "user_code_error" for record in records)

    def forget_before(self, batch_id: int) -> None:
        """Remove everything before a batch, oldest first: readers, and a kill, find no gap between outcomes."""
        entry_kinds: tuple[EntryKind, ...] = ("intent", "excluded", "outcome")
        for entry_kind in entry_kinds:
            for old_id in sorted(self._batch_ids(entry_kind)):
                if old_id < batch_id:
                    self._entry_path(old_id, entry_kind).unlink(missing_ok=True)

    def read_outcomes(self) -> Iterator[BatchOutcome]:
        """Return every retained outcome, oldest first."""
        return (self.read_outcome(batch_id) for batch_id in sorted(self._batch_ids("outcome")))

    def list_entries(self, batch_id: int) -> list[Path]:
        """Return the files of a batch that are there before its outcome."""
        paths = (self._entry_path(batch_id, kind) for kind in ("intent", "excluded"))
        return [path for path in paths if path.exists()]

    def drop_pending(self, batch_id: int) -> None:
        """Remove the entries of a batch without an outcome. Only its writer may do so, and before it starts."""
        for path in self.list_entries(batch_id):
            path.unlink()

    def sync(self) -> None:
        """Sync the names of all entries."""
        sync_folder(self.directory)

    def _remove_torn_entries(self) -> None:
        """Remove what a power cut left of the batch after the last outcome: nothing of that batch was shown."""
        next_id = max(self._batch_ids("outcome"), default=-1) + 1
        for path in self.list_entries(next_id):
            try:
                _read_json(path)
            except DamagedEntryError as damage:
                log.warning("Torn entry removed; its batch starts again (%s)", damage.problem)
                path.unlink()

    def _batch_ids(self, entry_kind: EntryKind) -> list[int]:
        return [int(path.name.split(".")[0]) for path in self.directory.glob(f"*.{entry_kind}.json")]

    def _entry_path(self, batch_id: int, entry_kind: EntryKind) -> Path:
        return self.directory / f"{batch_id:012d}.{entry_kind}.json"

    def _write_once(self, path: Path, data: Mapping[str, Any]) -> bool:
        partial_path = path.with_name(f"{path.name}.{uuid4().hex[:8]}.partial")
        content = msgspec.json.encode(data)
        content += format_checksum_line(content)
        if self._syncs and path.name.endswith("outcome.json"):
            write_synced(partial_path, content)
        else:
            partial_path.write_bytes(content)
        try:
            os.link(partial_path, path)
        except FileExistsError:
            return False
        finally:
            partial_path.unlink()
        return True


def read_retained_outcomes(directory: Path, after: int = -1) -> Sequence[BatchOutcome]:
    """Return the outcomes after a batch, oldest first, for readers: the writer may run.

    Files are read from the newest to the oldest, and the writer removes the oldest first. So the first file that is
    gone ends the history, and what is returned has a gap only where the journal has one.
    """
    while True:
        paths = sorted(directory.glob("*.outcome.json"), reverse=True)
        new_paths = [path for path in paths if int(path.name.split(".")[0]) > after]
        outcomes = list(_read_until_removed(new_paths))
        if outcomes or not new_paths:
            return outcomes[::-1]


def _read_until_removed(paths: Iterable[Path]) -> Iterator[BatchOutcome]:
    for path in paths:
        try:
            yield _read_outcome_file(path)
        except FileNotFoundError:
            return


def _read_outcome_file(path: Path) -> BatchOutcome:
    plain_outcome = _read_json(path)
    if plain_outcome["format"] != OUTCOME_FORMAT:
        is_newer = plain_outcome["format"] > OUTCOME_FORMAT
        fix = "Upgrade the host" if is_newer else "Replay the stream: this version does not read older state"
        raise JournalError(
            path, f"the file has format {plain_outcome['format']}, this version reads {OUTCOME_FORMAT}", fix
        )
    return parse_outcome(plain_outcome)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = msgspec.json.decode(verify_checksum(path, path.read_bytes()))
    except FileNotFoundError:
        raise
    except DamagedFileError as damage:
        raise DamagedEntryError(path, f"cannot be read: {damage.problem}") from damage
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedEntryError(path, f"cannot be read ({error})") from error
    return data
