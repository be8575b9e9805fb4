"""The claims of all pipelines and states on tables, as of the current files."""

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.engine import user_modules
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.engine.upgrade.stored_plan import read_stored_plan
from penstock.engine.user_modules import find_pipeline_file, find_user_modules
from penstock.ingestion.contracts import CATALOG_FOLDER, dead_letter_topic, list_contract_names
from penstock.pipelines import catalog
from penstock.pipelines.table_claims import (
    StreamOutputs,
    TableClaims,
    list_archive_outputs,
    list_pipeline_outputs,
)
from penstock.platform.errors import SettingsError
from penstock.platform.settings import load_settings
from penstock.platform.settings.naming import VARIABLE_PREFIX

log = logging.getLogger(__name__)

FAILED_CHECK_INTERVAL_S = 1.0


@dataclass(frozen=True)
class BuiltClaims:
    """Claims, the state of the files they were built from, and the pipelines that could not be loaded."""

    claims: TableClaims
    files: object
    failed: Mapping[str, object]


class ClaimsCache:
    """Builds the claims again only if a file changed, because hosts load one pipeline after another."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._built: BuiltClaims | None = None
        self._checked_at_s = 0.0

    def read(self) -> TableClaims:
        """Return the claims as of the current files."""
        streams = find_streams_folder()
        with self._lock:
            files = _stat_files(streams)
            if self._built is None or self._built.files != files or self._has_fixed_module(self._built):
                self._built = _build_claims(streams, files)
                self._checked_at_s = time.monotonic()
            return self._built.claims

    def _has_fixed_module(self, built: BuiltClaims) -> bool:
        """Whether a user module changed since pipelines failed; at most one look per second, as it reads files."""
        if time.monotonic() - self._checked_at_s < FAILED_CHECK_INTERVAL_S:
            return False
        self._checked_at_s = time.monotonic()
        return _stat_modules(built.failed) != built.failed


_cache = ClaimsCache()


def find_claim_conflict(name: str) -> DefinitionError | None:
    """Return why a pipeline may not write one of its tables or topics; None if it may write all."""
    return _cache.read().find_conflict(name)


def find_streams_folder() -> Path | None:
    """Return the folder of the streams of this installation; None if the settings are invalid."""
    variables = ((name, text) for name, text in os.environ.items() if name.startswith(VARIABLE_PREFIX))
    return _find_streams_folder(tuple(sorted(variables)))


@lru_cache(maxsize=8)
def _find_streams_folder(_variables: tuple[tuple[str, str], ...]) -> Path | None:
    try:
        return load_settings().settings.home / "streams"
    except SettingsError:
        return None


def read_stored_plans(streams: Path | None) -> Iterator[Plan]:
    """Yield the definition of each stream with state. A stored definition that cannot be read claims nothing."""
    for path in _list_stream_folders(streams):
        try:
            plan = read_stored_plan(resolve_stream_folder(path.parent, path.name))
        except (PenstockError, OSError, ValueError, KeyError, TypeError):
            log.warning("Stored definition cannot be read (stream=%s)", path.name, exc_info=True)
        else:
            yield from [] if plan is None else [plan]


def load_last_plan(streams: Path, stream: str) -> Plan | None:
    """Return the stored definition of a stream's state, or else that of its file; None if there is neither."""
    stored = read_stored_plan(resolve_stream_folder(streams, stream))
    if stored is not None:
        return stored
    try:
        return catalog.load_plan(stream) if stream in catalog.pipeline_names() else None
    except DefinitionError:
        return None


def _build_claims(streams: Path | None, files: object) -> BuiltClaims:
    outputs_by_stream = {
        plan.name: StreamOutputs(
            plan.name, find_pipeline_file(plan.name), state_outputs=tuple(list_pipeline_outputs(plan))
        )
        for plan in read_stored_plans(streams)
    }
    failed: list[str] = []
    for name in catalog.pipeline_names():
        try:
            plan = catalog.load_plan(name)
        except DefinitionError:
            failed.append(name)
            continue
        held = outputs_by_stream.get(name, StreamOutputs(name, find_pipeline_file(name)))
        outputs_by_stream[name] = replace(held, outputs=tuple(list_pipeline_outputs(plan)))
    archives = {topic: list_archive_outputs(topic) for topic in list_contract_names()}
    dead_letters = {dead_letter_topic(topic): topic for topic in archives}
    claims = TableClaims([*outputs_by_stream.values(), *archives.values()], dead_letters)
    return BuiltClaims(claims, files, _stat_modules(failed))


def _stat_modules(pipelines: Iterable[str]) -> Mapping[str, object]:
    """Return for each pipeline what changes with any of its user modules."""
    return {name: _stat_all(find_user_modules(name).values()) for name in pipelines}


def _stat_files(streams: Path | None) -> object:
    folders = [resolve_stream_folder(path.parent, path.name) for path in _list_stream_folders(streams)]
    paths = [
        *sorted(user_modules.CATALOG_FOLDER.iterdir()),
        *sorted(CATALOG_FOLDER.iterdir()),
        *(folder / "plan.json" for folder in folders),
    ]
    return _stat_all(paths)


def _list_stream_folders(streams: Path | None) -> list[Path]:
    return (
        [] if streams is None or not streams.is_dir() else sorted(p for p in streams.iterdir() if p.is_dir())
    )


def _stat_all(paths: Iterable[Path]) -> object:
    return [(path, stat.st_mtime_ns, stat.st_size) for path in paths if (stat := _stat(path)) is not None]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
