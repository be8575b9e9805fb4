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

from penstock.pipelines.batch.intent import Intent, intent_from
from penstock.pipelines.batch.outcome import FORMAT, Outcome, outcome_from
from penstock.pipelines.errors import JournalError

KEPT = 100
"""How many batches back the journal reaches: as many as can be gone back to."""


class Journal:
    """The journal in a folder. Holds nothing in memory: what it says is what is on the disk.

    To open it changes nothing, so whoever wants to know may look while its writer is at work.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def of_writer(cls, directory: Path) -> "Journal":
        """The journal for its one writer: the folder is made, and what a killed writer left half-done goes."""
        directory.mkdir(parents=True, exist_ok=True)
        for torn in directory.glob("*.partial"):
            torn.unlink(missing_ok=True)
        return cls(directory)

    def last_outcome(self) -> Outcome | None:
        """The newest batch that is decided."""
        numbers = self._numbers("outcome")
        return self.outcome(max(numbers)) if numbers else None

    def outcome(self, batch_id: int) -> Outcome:
        """The outcome of a batch, which must be there."""
        return _outcome(self._path(batch_id, "outcome"))

    def intent(self, batch_id: int) -> Intent | None:
        """The intent of a batch; None where none was written."""
        path = self._path(batch_id, "intent")
        return intent_from(_read(path)) if path.exists() else None

    def declare(self, intent: Intent) -> Intent:
        """Write an intent down; where there is one already, that one stands and is returned."""
        if self._write_once(self._path(intent.batch_id, "intent"), intent.as_dict()):
            return intent
        return intent_from(_read(self._path(intent.batch_id, "intent")))

    def decide(self, outcome: Outcome) -> Outcome:
        """Write an outcome down; where there is one already, that one stands and is returned."""
        if self._write_once(self._path(outcome.batch_id, "outcome"), outcome.as_dict()):
            return outcome
        return self.outcome(outcome.batch_id)

    def aside(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the records of a batch that broke one's own code; none where none was found."""
        path = self._path(batch_id, "aside")
        return list(_read(path)["records"]) if path.exists() else []

    def set_aside(self, batch_id: int, records: Sequence[Mapping[str, Any]]) -> None:
        """Write down which records of a batch broke one's own code; what is there already stands."""
        self._write_once(self._path(batch_id, "aside"), {"records": list(records)})

    def aside_before(self, batch_id: int) -> int:
        """How many records were set aside so in the batches that are kept, before this one."""
        kept = (each for number in self._numbers("aside") if number < batch_id for each in self.aside(number))
        return sum(each.get("kind", "breaks_code") == "breaks_code" for each in kept)

    def forget_before(self, batch_id: int) -> None:
        """Remove what is older than a batch, which stays."""
        for word in ("intent", "aside", "outcome"):
            for number in self._numbers(word):
                if number < batch_id:
                    self._path(number, word).unlink(missing_ok=True)

    def oldest(self) -> int | None:
        """The oldest batch that can be gone back to."""
        return min(self._numbers("outcome"), default=None)

    def outcomes(self) -> Iterator[Outcome]:
        """Every outcome that is kept, from old to young."""
        return (self.outcome(number) for number in sorted(self._numbers("outcome")))

    def _numbers(self, word: str) -> list[int]:
        return [int(path.name.split(".")[0]) for path in self.directory.glob(f"*.{word}.json")]

    def _path(self, batch_id: int, word: str) -> Path:
        return self.directory / f"{batch_id:012d}.{word}.json"

    def _write_once(self, path: Path, data: Mapping[str, Any]) -> bool:
        partial = path.with_name(f"{path.name}.{uuid4().hex[:8]}.partial")
        partial.write_bytes(msgspec.json.encode(data))
        try:
            os.link(partial, path)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True


def kept_outcomes(directory: Path, after: int = -1) -> Iterator[Outcome]:
    """Every outcome after a batch, from old to young, for whoever does not write: the writer may be at work."""
    for path in sorted(directory.glob("*.outcome.json")):
        if int(path.name.split(".")[0]) <= after:
            continue
        with suppress(FileNotFoundError):  # the journal forgets its oldest batches
            yield _outcome(path)


def _outcome(path: Path) -> Outcome:
    data = _read(path)
    if data["format"] != FORMAT:
        newer = data["format"] > FORMAT
        fix = (
            "Upgrade the host" if newer else "Replay the stream: the state of an earlier version is not read"
        )
        raise JournalError(path, f"format {data['format']}, and this version knows {FORMAT}", fix)
    return outcome_from(data)


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, msgspec.DecodeError) as problem:
        fix = "Restore the file from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({problem})", fix) from problem
    return data
