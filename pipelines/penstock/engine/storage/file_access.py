"""Reads and writes files and Delta tables, in folders and in object stores alike.

Files are written atomically: in a folder under a temporary name that is then renamed, in an object store by one
request.
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

from penstock.core.files import atomic_path, write_atomically
from penstock.engine.storage.arrow_delta_table import ArrowDeltaTable, delta_storage_options, storage_uri
from penstock.engine.storage.log_checksums import DELTA_LOG_FOLDER
from penstock.engine.storage.object_store import ObjectStorePath
from penstock.engine.storage.parquet_footers import insert_footer_checksum, read_checked_columns
from penstock.engine.storage.storage_path import StoragePath

READ_THREADS = 16


def open_delta_table(path: StoragePath, version: int | None = None) -> ArrowDeltaTable:
    """Open the Delta table at a path, or a version of it; raise TableNotFoundError when there is none."""
    if isinstance(path, Path):
        return ArrowDeltaTable(path, version)
    with path.translate_errors():
        return ArrowDeltaTable(path, version)


def is_delta_table(path: StoragePath) -> bool:
    """Whether there is a Delta table at a path."""
    if isinstance(path, Path):
        return DeltaTable.is_deltatable(str(path))
    with path.translate_errors():
        return DeltaTable.is_deltatable(path.uri, delta_storage_options(path))


def create_delta_table(path: StoragePath, schema: Any, **create_options: Any) -> DeltaTable:
    """Open the Delta table at a path, or create it; its name is the last part of the path."""
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
    """Create the folder of a file or table; an object store needs none."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)


def write_parquet(rows: pa.Table, file: StoragePath, **writer_options: Any) -> int:
    """Write a Parquet file atomically, with a checksum for each page and, in a folder, for the footer.

    Returns its size.
    """
    writer_options = {"compression": "zstd", "write_page_checksum": True, **writer_options}
    if isinstance(file, ObjectStorePath):
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, **writer_options)
        buffer = content.getvalue()
        file.write_bytes(buffer)
        return int(buffer.size)
    with atomic_path(file) as partial:
        pq.write_table(rows, partial, **writer_options)
        insert_footer_checksum(partial)
        return partial.stat().st_size


def read_parquet(file: StoragePath, schema: pa.Schema | None = None) -> pa.Table:
    """Return the rows of a Parquet file, and verify the checksums of its pages and footer.

    Raises FileNotFoundError when there is no such file, and OSError if it is damaged.
    """
    if isinstance(file, ObjectStorePath):
        with file.translate_errors():
            return pq.read_table(
                file.key, schema=schema, filesystem=file.filesystem, page_checksum_verification=True
            )
    read_checked_columns(file)
    return pq.read_table(file, schema=schema, page_checksum_verification=True)


def write_text(file: StoragePath, text: str) -> None:
    """Write a text file atomically."""
    if isinstance(file, ObjectStorePath):
        file.write_bytes(text.encode())
    else:
        write_atomically(file, text)


def file_size(file: StoragePath) -> int | None:
    """Return the size of a file in bytes; None when there is no such file."""
    try:
        return file.size() if isinstance(file, ObjectStorePath) else file.stat().st_size
    except FileNotFoundError:
        return None


def read_file_contents(files: Sequence[StoragePath]) -> Iterator[bytes]:
    """Yield the content of files in order; files in an object store are read in parallel."""
    if any(isinstance(file, ObjectStorePath) for file in files):
        with ThreadPoolExecutor(READ_THREADS) as pool:
            yield from pool.map(lambda file: file.read_bytes(), files)
    else:
        yield from (file.read_bytes() for file in files)


def link_or_copy_file(source: StoragePath, target: StoragePath) -> None:
    """Hard-link a file under another name, or copy it where links do not work. An existing target stays."""
    if target.exists():
        return
    if isinstance(source, ObjectStorePath) and isinstance(target, ObjectStorePath):
        with target.translate_errors():
            target.filesystem.copy_file(source.key, target.key)  # within the store
    elif isinstance(source, Path) and isinstance(target, Path):
        _replace_with_link(source, target)
    else:
        raise TypeError(f"{source} and {target} are in different stores")


def list_warehouse_tables(warehouse: StoragePath) -> Iterator[str]:
    """Yield every table two levels down, such as `latest/cards`, in order."""
    for folder in list_children(warehouse):
        yield from (f"{folder.name}/{name}" for name in list_table_names(folder))


def list_table_names(folder: StoragePath) -> Iterator[str]:
    """Yield the names of the tables directly below a folder, in order."""
    if isinstance(folder, Path):
        yield from (log.parent.name for log in sorted(folder.glob(f"*/{DELTA_LOG_FOLDER}")))
    else:
        yield from (table.name for table in list_children(folder) if (table / DELTA_LOG_FOLDER).exists())


def list_children(folder: StoragePath) -> Iterator[StoragePath]:
    """Yield the paths directly below a folder, in order; none when there is no such folder."""
    if isinstance(folder, ObjectStorePath) or folder.exists():
        children: Sequence[StoragePath] = list(folder.iterdir())
        yield from sorted(children, key=str)


def list_files(folder: StoragePath) -> Iterator[tuple[StoragePath, int]]:
    """Yield the files directly below a folder, each with its modification time in milliseconds."""
    if isinstance(folder, ObjectStorePath):
        yield from folder.list_files()
    else:
        entries = (entry for entry in sorted(folder.glob("*")) if entry.is_file())
        yield from ((file, int(file.stat().st_mtime * 1000)) for file in entries)


def measure_tree(path: StoragePath) -> int:
    """Return the bytes of all files below a path."""
    if isinstance(path, Path):
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.measure_below()


def remove_tree(path: StoragePath) -> None:
    """Remove a folder with everything below it; files that cannot be removed stay."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        with path.translate_errors():
            path.filesystem.delete_dir(path.key)


def _replace_with_link(source: Path, target: Path) -> None:
    with atomic_path(target) as partial:
        try:
            os.link(source, partial)
        except OSError:  # another file system
            shutil.copyfile(source, partial)
