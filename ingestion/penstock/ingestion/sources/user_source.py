"""Checks what a source from outside of Penstock returns, so that a mistake in it ends in one sentence.

Without these checks, a wrong value fails deep inside the producer, and a source that forgets its position sends its
records twice.
"""

import inspect
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.core.display_path import display_path
from penstock.core.errors import PenstockError
from penstock.ingestion.errors import SourceError, UserSourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.source import LocatingSource, RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind

_BATCH_EXAMPLE = "yield SourceBatch([b'{\"id\": 1}'], position=1)"


def open_checked(name: str, kind: type[SourceKind], context: SourceContext) -> RecordSource:
    """Open a source and return it. One from outside of Penstock is checked while it is read.

    Raises UserSourceError if it fails, and SourceError if it is not a source.
    """
    try:
        source = kind.open(context)
    except PenstockError:
        raise
    except Exception as error:
        raise UserSourceError(name, _describe_error(error, kind)) from error
    if type(source).__module__.startswith("penstock."):
        return source
    if not hasattr(source, "is_replayable"):
        raise SourceError(
            f"source {name}: open returned {_name_type(source)}. Return an object whose class derives from "
            "ReplayableSource, or from OneShotSource if it cannot return a record twice."
        )
    if not isinstance(getattr(source, "description", None), str):
        raise SourceError(
            f"source {name} has no description. Set self.description to a text that identifies the data, such as "
            "the address that it reads. A producer continues only with the same one."
        )
    return CheckedSource(source, name)


class CheckedSource:
    """A source that checks what another one returns: batches of bytes, each at its own position."""

    def __init__(self, source: RecordSource, name: str) -> None:
        self.description = source.description
        self.is_replayable = source.is_replayable
        self._source = source
        self._name = name

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield checked batches from a position on."""
        return self._check_positions(self._check_batches(lambda: self._source.read(position)), position)

    def replay_from(self, position: Any) -> Iterator[SourceBatch]:
        """Yield checked batches of a position and those that follow."""
        return self._check_positions(
            self._check_batches(lambda: self._source.replay_from(position)), position
        )

    def pace_batches(self, batches: Iterator[SourceBatch]) -> Iterator[SourceBatch]:
        """Yield batches when the source says that they are due."""
        return self._check_batches(lambda: self._source.pace_batches(batches))

    def on_acknowledged(self, records: int) -> None:
        """Pass the number of delivered records on."""
        self._source.on_acknowledged(records)

    def locate_record(self, position: Any, value: bytes) -> str:
        """Return where a record is, if the source knows it."""
        return self._source.locate_record(position, value) if isinstance(self._source, LocatingSource) else ""

    def _check_batches(self, read: Callable[[], Iterator[SourceBatch]]) -> Iterator[SourceBatch]:
        try:
            batches = read()
            if not isinstance(batches, Iterator):
                raise self._explain(f"read returned {_name_type(batches)}. Yield batches: {_BATCH_EXAMPLE}")
            for batch in batches:
                self._check_batch(batch)
                yield batch
        except PenstockError:
            raise
        except Exception as error:
            raise UserSourceError(self._name, _describe_error(error, type(self._source))) from error

    def _check_batch(self, batch: object) -> None:
        if not isinstance(batch, SourceBatch):
            raise self._explain(f"read yielded {_name_type(batch)}. Yield batches: {_BATCH_EXAMPLE}")
        for value in batch.values:
            if not isinstance(value, bytes):
                raise self._explain(
                    f"read yielded a record of type {type(value).__name__}. Yield bytes, as in "
                    "json.dumps(record).encode()"
                )

    def _check_positions(
        self, batches: Iterator[SourceBatch], requested: Any | None
    ) -> Iterator[SourceBatch]:
        """Check positions that are numbers: only those have to be equal when the source reads them again."""
        previous: SourceBatch | None = None
        for batch in batches:
            if type(batch.position) is int and len(batch) and not batch.skip_records:
                if previous is not None and batch.position == previous.position:
                    raise self._explain(
                        f"two batches have the position {batch.position}. Give each batch the position from which "
                        "read returns its records again"
                    )
                if previous is None and type(requested) is int and batch.position != requested:
                    raise self._explain(
                        f"read({requested}) started at position {batch.position}. Start at the position that read "
                        "is given, or records are sent twice"
                    )
                previous = batch
            yield batch

    def _explain(self, problem: str) -> SourceError:
        return SourceError(f"source {self._name} ({_show_file(type(self._source))}): {problem}.")


def _name_type(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _show_file(source_class: type) -> str:
    file = inspect.getsourcefile(source_class)
    return display_path(Path(file)) if file else source_class.__module__


def _describe_error(error: Exception, source_class: type) -> str:
    """Return the error after the innermost line of the file of the source; without one, after the file."""
    file = inspect.getsourcefile(source_class)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = display_path(Path(file), lines[-1]) if file and lines else _show_file(source_class)
    return f"{where}: {f'{type(error).__name__}: {error}'.splitlines()[0]}"
