"""A registry in a folder: one JSON file, replaced as a whole, one writer at a time."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.ingestion.contracts.schemas import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.registry import Registered


class FileRegistry:
    """Serves one machine, or a file system that several share and that knows locks.

    Promises that a registered version is on disk and never changes; ids count from 1 and are never given twice.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "schemas.json"
        self._lock = directory / "lock"

    def register(self, subject: str, schema: Schema) -> Registered:
        """Add a version, or return the one that has this schema already."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            content = self._content()
            for found in self.versions(subject):
                if found.schema == schema:
                    return found
            ids = {_text(known): int(number) for number, known in content["schemas"].items()}
            number = ids.get(_text(schema), len(ids) + 1)
            content["schemas"][str(number)] = schema
            content["subjects"].setdefault(subject, []).append(number)
            self._replace(content)
            return Registered(subject, len(content["subjects"][subject]), number, schema)

    def subjects(self) -> tuple[str, ...]:
        """Return every subject, sorted."""
        return tuple(sorted(self._content()["subjects"]))

    def versions(self, subject: str) -> tuple[Registered, ...]:
        """Return every version of a subject, oldest first."""
        content = self._content()
        numbers = content["subjects"].get(subject, [])
        return tuple(
            Registered(subject, place + 1, number, content["schemas"][str(number)])
            for place, number in enumerate(numbers)
        )

    def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id, or None where there is none."""
        found: Schema | None = self._content()["schemas"].get(str(schema_id))
        return found

    def _content(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"schemas": {}, "subjects": {}}
        except ValueError as error:
            raise RegistryError(f"{self._path} is no registry: {error}; restore it from a copy") from error
        return content

    def _replace(self, content: dict[str, Any]) -> None:
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _text(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True)
