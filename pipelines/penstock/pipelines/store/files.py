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

from penstock.pipelines.store.address import Address
from penstock.pipelines.store.place import Place
from penstock.pipelines.store.table import StoredTable, options, uri_of

LOG = "_delta_log"
AT_ONCE = 16


def delta_table(place: Place, version: int | None = None) -> DeltaTable:
    """The table of a place. TableNotFoundError where there is none."""
    if isinstance(place, Path):
        return StoredTable(place, version)
    with place.asking():
        return StoredTable(place, version)


def is_table(place: Place) -> bool:
    """Whether there is a table."""
    if isinstance(place, Path):
        return DeltaTable.is_deltatable(str(place))
    with place.asking():
        return DeltaTable.is_deltatable(place.uri, options(place))


def new_table(place: Place, schema: Any, **told: Any) -> DeltaTable:
    """The table of a place, made where there is none; it is called as its place is."""
    make_folder(place)
    DeltaTable.create(
        uri_of(place), schema, mode="ignore", name=place.name, storage_options=options(place), **told
    )
    return StoredTable(place)


def make_folder(place: Place) -> None:
    """Make the folder that holds a file or table; an object store has none."""
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)


def write_rows(rows: pa.Table, file: Place, **how: Any) -> int:
    """Write a file of Parquet, whole or not at all; returns its size."""
    if isinstance(file, Address):
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd", **how)
        whole = content.getvalue()
        file.write_bytes(whole)
        return int(whole.size)
    partial = file.with_name(f"_{file.name.removesuffix('.parquet')}.partial")
    try:
        pq.write_table(rows, partial, compression="zstd", **how)
    except Exception:
        partial.unlink(missing_ok=True)  # a disk that is full would get fuller with each try
        raise
    size = partial.stat().st_size
    partial.replace(file)
    return size


def read_rows(file: Place, schema: pa.Schema | None = None) -> pa.Table:
    """The rows of a file of Parquet. FileNotFoundError where there is none."""
    if isinstance(file, Address):
        with file.asking():
            return pq.read_table(file.key, schema=schema, filesystem=file.files)
    return pq.read_table(file, schema=schema)


def write_text(file: Place, text: str) -> None:
    """Write a file of text, whole or not at all."""
    if isinstance(file, Address):
        file.write_bytes(text.encode())
        return
    partial = file.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(file)


def size_of(file: Place) -> int | None:
    """The bytes of a file; None where there is none."""
    try:
        return file.size() if isinstance(file, Address) else file.stat().st_size
    except FileNotFoundError:
        return None


def read_all(files: Sequence[Place]) -> Iterator[bytes]:
    """The content of files, in their order; of an object store several at a time."""
    if any(isinstance(file, Address) for file in files):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(lambda file: file.read_bytes(), files)
    else:
        yield from (file.read_bytes() for file in files)


def same_file(source: Place, target: Place) -> None:
    """Have a file under another name, too: linked where it can be, else copied. One that is there stays."""
    if target.exists():
        return
    if isinstance(source, Address) and isinstance(target, Address):
        with target.asking():
            target.files.copy_file(source.key, target.key)  # within the store
    elif isinstance(source, Path) and isinstance(target, Path):
        _linked(source, target)
    else:
        raise TypeError(f"{source} and {target} are not in one store")


def tables_below(warehouse: Place) -> Iterator[str]:
    """Every table two levels down, as `latest/cards`, in order."""
    for kind in places_in(warehouse):
        yield from (f"{kind.name}/{name}" for name in tables_in(kind))


def tables_in(kind: Place) -> Iterator[str]:
    """The names of the tables directly below a place, in order."""
    if isinstance(kind, Path):
        yield from (log.parent.name for log in sorted(kind.glob(f"*/{LOG}")))
    else:
        yield from (table.name for table in places_in(kind) if (table / LOG).exists())


def places_in(place: Place) -> Iterator[Place]:
    """What lies directly below a place, in order; nothing where there is no such place."""
    if isinstance(place, Address) or place.exists():
        below: Sequence[Place] = list(place.iterdir())
        yield from sorted(below, key=str)


def files_in(folder: Place) -> Iterator[tuple[Place, int]]:
    """The files directly below a folder, each with when it was written, in milliseconds."""
    if isinstance(folder, Address):
        yield from folder.written()
    else:
        found = (each for each in sorted(folder.glob("*")) if each.is_file())
        yield from ((file, int(file.stat().st_mtime * 1000)) for file in found)


def remove_below(place: Place) -> None:
    """Remove everything that lies below; what cannot be removed stays."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
    elif place.exists():
        with place.asking():
            place.files.delete_dir(place.key)


def _linked(source: Path, target: Path) -> None:
    partial = target.with_name(f"_{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:  # another file system
        shutil.copyfile(source, partial)
    partial.replace(target)
