"""Files and tables of a place, whichever kind it is.

In a folder a file is written under another name and renamed; in an object store putting it is one step by itself.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from penstock.engine.storage.arrow_delta_table import ArrowDeltaTable, delta_storage_options, storage_uri
from penstock.engine.storage.object_store import ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath

DELTA_LOG_FOLDER = "_delta_log"
READ_THREADS = 16


def open_delta_table(path: StoragePath, version: int | None = None) -> DeltaTable:
    """The table of a place. TableNotFoundError where there is none."""
    if isinstance(path, Path):
        return ArrowDeltaTable(path, version)
    with path.translate_errors():
        return ArrowDeltaTable(path, version)


def is_delta_table(path: StoragePath) -> bool:
    """Whether there is a table."""
    if isinstance(path, Path):
        return DeltaTable.is_deltatable(str(path))
    with path.translate_errors():
        return DeltaTable.is_deltatable(path.uri, delta_storage_options(path))


def create_delta_table(path: StoragePath, schema: Any, **create_options: Any) -> DeltaTable:
    """The table of a place, made where there is none; it is called as its place is."""
    make_parent_folder(path)
    DeltaTable.create(
        storage_uri(path),
        schema,
        mode="ignore",
        name=path.name,
        storage_options=delta_storage_options(path),
        **create_options,
    )
    return ArrowDeltaTable(path)


def make_parent_folder(path: StoragePath) -> None:
    """Make the folder that holds a file or table; an object store has none."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)


def write_parquet(rows: pa.Table, file: StoragePath, **writer_options: Any) -> int:
    """Write a file of Parquet, whole or not at all; returns its size."""
    if isinstance(file, ObjectStorePath):
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd", **writer_options)
        buffer = content.getvalue()
        file.write_bytes(buffer)
        return int(buffer.size)
    partial = file.with_name(f"_{file.name.removesuffix('.parquet')}.partial")
    try:
        pq.write_table(rows, partial, compression="zstd", **writer_options)
    except Exception:
        partial.unlink(missing_ok=True)  # a disk that is full would get fuller with each try
        raise
    size = partial.stat().st_size
    partial.replace(file)
    return size


def read_parquet(file: StoragePath, schema: pa.Schema | None = None) -> pa.Table:
    """The rows of a file of Parquet. FileNotFoundError where there is none."""
    if isinstance(file, ObjectStorePath):
        with file.translate_errors():
            return pq.read_table(file.key, schema=schema, filesystem=file.filesystem)
    return pq.read_table(file, schema=schema)


def write_text(file: StoragePath, text: str) -> None:
    """Write a file of text, whole or not at all."""
    if isinstance(file, ObjectStorePath):
        file.write_bytes(text.encode())
        return
    partial = file.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(file)


def file_size(file: StoragePath) -> int | None:
    """The bytes of a file; None where there is none."""
    try:
        return file.size() if isinstance(file, ObjectStorePath) else file.stat().st_size
    except FileNotFoundError:
        return None


def read_file_contents(files: Sequence[StoragePath]) -> Iterator[bytes]:
    """The content of files, in their order; of an object store several at a time."""
    if any(isinstance(file, ObjectStorePath) for file in files):
        with ThreadPoolExecutor(READ_THREADS) as pool:
            yield from pool.map(lambda file: file.read_bytes(), files)
    else:
        yield from (file.read_bytes() for file in files)


def link_or_copy_file(source: StoragePath, target: StoragePath) -> None:
    """Have a file under another name, too: linked where it can be, else copied. One that is there stays."""
    if target.exists():
        return
    if isinstance(source, ObjectStorePath) and isinstance(target, ObjectStorePath):
        with target.translate_errors():
            target.filesystem.copy_file(source.key, target.key)  # within the store
    elif isinstance(source, Path) and isinstance(target, Path):
        _replace_with_link(source, target)
    else:
        raise TypeError(f"{source} and {target} are not in one store")


def list_warehouse_tables(warehouse: StoragePath) -> Iterator[str]:
    """Every table two levels down, as `latest/cards`, in order."""
    for folder in list_children(warehouse):
        yield from (f"{folder.name}/{name}" for name in list_table_names(folder))


def list_table_names(folder: StoragePath) -> Iterator[str]:
    """The names of the tables directly below a place, in order."""
    if isinstance(folder, Path):
        yield from (log.parent.name for log in sorted(folder.glob(f"*/{DELTA_LOG_FOLDER}")))
    else:
        yield from (table.name for table in list_children(folder) if (table / DELTA_LOG_FOLDER).exists())


def list_children(folder: StoragePath) -> Iterator[StoragePath]:
    """What lies directly below a place, in order; nothing where there is no such place."""
    if isinstance(folder, ObjectStorePath) or folder.exists():
        children: Sequence[StoragePath] = list(folder.iterdir())
        yield from sorted(children, key=str)


def list_files(folder: StoragePath) -> Iterator[tuple[StoragePath, int]]:
    """The files directly below a folder, each with when it was written, in milliseconds."""
    if isinstance(folder, ObjectStorePath):
        yield from folder.list_files()
    else:
        entries = (entry for entry in sorted(folder.glob("*")) if entry.is_file())
        yield from ((file, int(file.stat().st_mtime * 1000)) for file in entries)


def remove_tree(path: StoragePath) -> None:
    """Remove everything that lies below; what cannot be removed stays."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        with path.translate_errors():
            path.filesystem.delete_dir(path.key)


def _replace_with_link(source: Path, target: Path) -> None:
    partial = target.with_name(f"_{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:  # another file system
        shutil.copyfile(source, partial)
    partial.replace(target)
