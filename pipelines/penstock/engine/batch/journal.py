"""The journal of a stream: an intent and an outcome for each batch, each written once and never changed.

Both are created under a name that must not exist yet. If two hosts write the same batch, the second one finds what
the first one wrote and continues from that, so both commit the same.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from penstock.engine.batch.intent import BatchIntent, parse_intent
from penstock.engine.batch.outcome import OUTCOME_FORMAT, BatchOutcome, parse_outcome
from penstock.engine.errors import JournalError

RETAINED_BATCHES = 100
"""How many batches the journal retains."""


class BatchJournal:
    """The journal in a folder. Holds nothing in memory: every call reads the disk.

    Opening it changes nothing, so anyone may read it while its writer runs.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def open_for_writing(cls, directory: Path) -> "BatchJournal":
        """Open the journal for its only writer: create the folder, and remove partial files of a killed writer."""
        directory.mkdir(parents=True, exist_ok=True)
        for partial_file in directory.glob("*.partial"):
            partial_file.unlink(missing_ok=True)
        return cls(directory)

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
        """Write an outcome; if there is one already, return that one."""
        if self._write_once(self._entry_path(outcome.batch_id, "outcome"), outcome.as_dict()):
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
        """Remove everything before a batch."""
        for entry_kind in ("intent", "excluded", "outcome"):
            for old_id in self._batch_ids(entry_kind):
                if old_id < batch_id:
                    self._entry_path(old_id, entry_kind).unlink(missing_ok=True)

    def read_outcomes(self) -> Iterator[BatchOutcome]:
        """Return every retained outcome, oldest first."""
        return (self.read_outcome(batch_id) for batch_id in sorted(self._batch_ids("outcome")))

    def _batch_ids(self, entry_kind: str) -> list[int]:
        return [int(path.name.split(".")[0]) for path in self.directory.glob(f"*.{entry_kind}.json")]

    def _entry_path(self, batch_id: int, entry_kind: str) -> Path:
        return self.directory / f"{batch_id:012d}.{entry_kind}.json"

    def _write_once(self, path: Path, data: Mapping[str, Any]) -> bool:
        partial_path = path.with_name(f"{path.name}.{uuid4().hex[:8]}.partial")
        partial_path.write_bytes(msgspec.json.encode(data))
        try:
            os.link(partial_path, path)
        except FileExistsError:
            return False
        finally:
            partial_path.unlink()
        return True


def read_retained_outcomes(directory: Path, after: int = -1) -> Iterator[BatchOutcome]:
    """Return every outcome after a batch, oldest first, for readers: the writer may run."""
    for path in sorted(directory.glob("*.outcome.json")):
        if int(path.name.split(".")[0]) <= after:
            continue
        with suppress(FileNotFoundError):  # the writer removes its oldest batches
            yield _read_outcome_file(path)


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
        data: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, msgspec.DecodeError) as error:
        fix = "Restore the file from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({error})", fix) from error
    return data
