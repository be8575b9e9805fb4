"""Schema registry in a folder: one JSON file, replaced atomically, by one writer at a time."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.core.file_sync import sync_folder
from penstock.core.files import atomic_path
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.schema_registry import RegisteredSchema


class FileRegistry:
    """Serves one machine, or several machines that share a file system with locks.

    Guarantees that a registered version is on disk and never changes, and that ids count from 1 and are never
    reused.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "schemas.json"
        self._lock_path = directory / "lock"

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a version, or return the existing version with this schema."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._hold_lock():
            content = self._read_content()
            for existing in self.list_versions(subject):
                if existing.schema == schema:
                    return existing
            ids = {
                _canonical_text(stored_schema): int(schema_id)
                for schema_id, stored_schema in content["schemas"].items()
            }
            schema_id = ids.get(_canonical_text(schema), len(ids) + 1)
            content["schemas"][str(schema_id)] = schema
            content["subjects"].setdefault(subject, []).append(schema_id)
            self._write_content(content)
            return RegisteredSchema(subject, len(content["subjects"][subject]), schema_id, schema)

    def list_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return every version of a subject, oldest first."""
        content = self._read_content()
        schema_ids = content["subjects"].get(subject, [])
        return tuple(
            RegisteredSchema(subject, index + 1, schema_id, content["schemas"][str(schema_id)])
            for index, schema_id in enumerate(schema_ids)
        )

    def find_schema(self, schema_id: int) -> Schema | None:
        """Return the schema with this id, or None."""
        schema: Schema | None = self._read_content()["schemas"].get(str(schema_id))
        return schema

    def _read_content(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"schemas": {}, "subjects": {}}
        except ValueError as error:
            raise RegistryError(
                f"{self._path} is not a schema registry: {error}. Restore it from a copy."
            ) from error
        return content

    def _write_content(self, content: dict[str, Any]) -> None:
        with atomic_path(self._path) as partial, partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._path.parent)

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        with self._lock_path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _canonical_text(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True)
