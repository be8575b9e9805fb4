"""Drops a stream: its tables, its state, and its records in the control store.

The order lets an interrupted drop run again: the stored definition, which names the tables, goes after the tables,
and the records in the control store, by which `penstock status` knows the stream, go last.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.core.display_path import display_path
from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.archive.archive_names import find_archived_topic, ledger_path, records_path
from penstock.engine.stream_folders import read_unfinished_switch, read_writer_id
from penstock.engine.tables.table_owner import find_table_owner
from penstock.engine.user_modules import find_pipeline_file
from penstock.pipelines.table_claims import list_pipeline_outputs
from penstock.platform.control.removal import remove_stream_records
from penstock.platform.errors import RemovalError, UnknownStreamError
from penstock.platform.services.dependents import list_dependents
from penstock.platform.services.removal import RemovalPlan, RemovedItem, describe_table, remove_table
from penstock.platform.services.stream_catalog import list_stream_names, list_streams_without_file
from penstock.platform.services.stream_hold import acquire_fence
from penstock.platform.services.stream_lifecycle import has_live_lease
from penstock.platform.services.table_claims import load_last_plan
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.storage import StoragePath
    from penstock.platform.control import ControlStore


@dataclass(frozen=True)
class StreamDrop:
    """The request to drop a stream. With `keep_tables`, its tables stay, without an owner."""

    stream: str
    keep_tables: bool = False


def list_known_streams(settings: Settings, store: "ControlStore") -> tuple[str, ...]:
    """List every stream that has a file, state or records, the ones with a file first."""
    known, without_file = list_stream_names(), list_streams_without_file(settings.home / "streams")
    return (*known, *sorted({*without_file, *store.read_desired_states()} - {*known}))


def plan_stream_drop(settings: Settings, store: "ControlStore", request: StreamDrop) -> RemovalPlan:
    """Return what a drop would remove, and what prevents it."""
    stream, folder = request.stream, settings.home / "streams" / request.stream
    known = list_known_streams(settings, store)
    if stream not in known:
        raise UnknownStreamError(explain_unknown_name("stream", stream, known, "penstock status"))
    tables = _list_own_tables(settings, stream)
    removed = [] if request.keep_tables else [describe_table(path, name) for name, path in tables.items()]
    if folder.is_dir():
        removed.append(RemovedItem("state", display_path(folder), size_bytes=_measure_folder(folder)))
    removed.append(RemovedItem("records of the control store", stream))
    return RemovalPlan(
        f"stream {stream}",
        removed,
        tuple(_find_blockers(settings, store, request, tables)),
        tuple(_list_remarks(stream, tables if request.keep_tables else {})),
    )


def drop_stream(
    settings: Settings, store: "ControlStore", request: StreamDrop, report_progress: ProgressReporter
) -> None:
    """Remove a stream as planned. Raises RemovalError if something prevents it now."""
    plan_stream_drop(settings, store, request).refuse_if_blocked()
    streams = settings.home / "streams"
    with acquire_fence(store, streams, request.stream, "a drop"):
        for name, path in _list_own_tables(settings, request.stream).items():
            report_progress(name)
            if not request.keep_tables:
                remove_table(path)
        _remove_state(settings.home, request.stream)
    remove_stream_records(store, request.stream)


def _list_own_tables(settings: Settings, stream: str) -> "dict[str, StoragePath]":
    """Return the existing tables that the stream owns, by their path in the warehouse."""
    warehouse, writer_id = settings.warehouse_path, read_writer_id(settings.home / "streams", stream)
    tables = {}
    for name in _list_table_names(settings, stream):
        owner = find_table_owner(warehouse / name)
        is_own = owner is None or (owner.stream, owner.writer_id) == (stream, writer_id)
        if is_own and (warehouse / name).exists():
            tables[name] = warehouse / name
    return tables


def _list_table_names(settings: Settings, stream: str) -> Sequence[str]:
    topic = find_archived_topic(stream)
    if topic is not None:
        return records_path(topic), ledger_path(topic)
    plan = load_last_plan(settings.home / "streams", stream)
    return [] if plan is None else [output.path for output in list_pipeline_outputs(plan)]


def _find_blockers(
    settings: Settings, store: "ControlStore", request: StreamDrop, tables: "dict[str, StoragePath]"
) -> Iterator[str]:
    stream = request.stream
    desired_state = store.read_desired_states().get(stream)
    if (desired_state is not None and desired_state.needs_host) or has_live_lease(store, stream):
        yield f"it runs, or should run. Stop it: `penstock stream drain {stream}`"
    if replay := read_unfinished_switch(settings.home / "streams", stream):
        yield f"replay {replay} was interrupted. Finish it: `penstock stream replay {stream} --name {replay}`"
    if not request.keep_tables:
        plan = load_last_plan(settings.home / "streams", stream)
        topics = (
            [] if plan is None else [o.name for o in list_pipeline_outputs(plan) if o.keyword == "publish"]
        )
        yield from list_dependents(settings, [*tables], topics, stream)


def _list_remarks(stream: str, kept_tables: "dict[str, StoragePath]") -> Iterator[str]:
    file = find_pipeline_file(stream)
    if file is not None:
        yield f"{display_path(file)} stays; with it, the stream can be started again, from the beginning"
    for name in kept_tables:
        yield f"{name} stays; hand it to another stream with `penstock table claim {name} --stream NAME`"
    yield "its rows in quarantine tables stay, and so do published topics and the tables of bounded runs"


def _measure_folder(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _remove_state(home: Path, stream: str) -> None:
    """Remove the folder of a stream: first in one step from its place, then from the disk."""
    folder, dropped = home / "streams" / stream, home / "dropped"
    if folder.is_dir():
        dropped.mkdir(exist_ok=True)
        folder.rename(dropped / f"{stream}-{uuid4().hex[:8]}")
    if dropped.is_dir():
        shutil.rmtree(dropped)
    if folder.exists():
        raise RemovalError(f"{folder} is still there. Check its permissions, then repeat")
