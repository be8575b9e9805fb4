"""The journal of a stream: an intent and an outcome for each batch, each written once and never changed.

Both are made under a name that must not exist yet. Of two hosts that mean to write the same batch one comes
second, finds what the first wrote, and goes by that: so whatever either of them commits is the same.
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
"""How many batches back the journal reaches: as many as can be gone back to."""


class BatchJournal:
    """The journal in a folder. Holds nothing in memory: what it says is what is on the disk.

    To open it changes nothing, so whoever wants to know may look while its writer is at work.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def open_for_writing(cls, directory: Path) -> "BatchJournal":
        """The journal for its one writer: the folder is made, and what a killed writer left half-done goes."""
        directory.mkdir(parents=True, exist_ok=True)
        for partial_file in directory.glob("*.partial"):
            partial_file.unlink(missing_ok=True)
        return cls(directory)

    def read_last_outcome(self) -> BatchOutcome | None:
        """The newest batch that is decided."""
        batch_ids = self._batch_ids("outcome")
        return self.read_outcome(max(batch_ids)) if batch_ids else None

    def read_outcome(self, batch_id: int) -> BatchOutcome:
        """The outcome of a batch, which must be there."""
        return _read_outcome_file(self._entry_path(batch_id, "outcome"))

    def read_intent(self, batch_id: int) -> BatchIntent | None:
        """The intent of a batch; None where none was written."""
        path = self._entry_path(batch_id, "intent")
        return parse_intent(_read_json(path)) if path.exists() else None

    def declare_intent(self, intent: BatchIntent) -> BatchIntent:
        """Write an intent down; where there is one already, that one stands and is returned."""
        if self._write_once(self._entry_path(intent.batch_id, "intent"), intent.as_dict()):
            return intent
        return parse_intent(_read_json(self._entry_path(intent.batch_id, "intent")))

    def commit_outcome(self, outcome: BatchOutcome) -> BatchOutcome:
        """Write an outcome down; where there is one already, that one stands and is returned."""
        if self._write_once(self._entry_path(outcome.batch_id, "outcome"), outcome.as_dict()):
            return outcome
        return self.read_outcome(outcome.batch_id)

    def read_excluded(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the records of a batch that broke one's own code; none where none was found."""
        path = self._entry_path(batch_id, "aside")
        return list(_read_json(path)["records"]) if path.exists() else []

    def record_excluded(self, batch_id: int, records: Sequence[Mapping[str, Any]]) -> None:
        """Write down which records of a batch broke one's own code; what is there already stands."""
        self._write_once(self._entry_path(batch_id, "aside"), {"records": list(records)})

    def count_poison_before(self, batch_id: int) -> int:
        """How many records were set aside so in the batches that are kept, before this one."""
        records = (
            record
            for earlier_id in self._batch_ids("aside")
            if earlier_id < batch_id
            for record in self.read_excluded(earlier_id)
        )
        return sum(record.get("kind", "user_code_error") == "user_code_error" for record in records)

    def forget_before(self, batch_id: int) -> None:
        """Remove what is older than a batch, which stays."""
        for entry_kind in ("intent", "aside", "outcome"):
            for old_id in self._batch_ids(entry_kind):
                if old_id < batch_id:
                    self._entry_path(old_id, entry_kind).unlink(missing_ok=True)

    def oldest_batch_id(self) -> int | None:
        """The oldest batch that can be gone back to."""
        return min(self._batch_ids("outcome"), default=None)

    def read_outcomes(self) -> Iterator[BatchOutcome]:
        """Every outcome that is kept, from old to young."""
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
    """Every outcome after a batch, from old to young, for whoever does not write: the writer may be at work."""
    for path in sorted(directory.glob("*.outcome.json")):
        if int(path.name.split(".")[0]) <= after:
            continue
        with suppress(FileNotFoundError):  # the journal forgets its oldest batches
            yield _read_outcome_file(path)


def _read_outcome_file(path: Path) -> BatchOutcome:
    plain_outcome = _read_json(path)
    if plain_outcome["format"] != OUTCOME_FORMAT:
        is_newer = plain_outcome["format"] > OUTCOME_FORMAT
        fix = (
            "Upgrade the host"
            if is_newer
            else "Replay the stream: the state of an earlier version is not read"
        )
        raise JournalError(
            path, f"format {plain_outcome['format']}, and this version knows {OUTCOME_FORMAT}", fix
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
