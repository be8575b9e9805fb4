"""Excludes rows of erased keys, which no recomputation can reproduce.

The record of an erasure has a digest of the key, so the key of each row is hashed and compared. The rows of an
erased key may have been deleted as well, so none of them is compared.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import pyarrow as pa

from penstock.engine.batch.erasure_account import digest_key
from penstock.engine.tables.table_paths import ERASURES_FOLDER
from penstock.quality.audit.scope import AuditScope
from penstock.quality.table_reads import read_rows as rows_of

ErasedKey = tuple[tuple[str, ...], str]
"""The fields of a key, and the digest of their values."""


def read_erased_keys(scope: AuditScope) -> list[ErasedKey]:
    """Return the keys that were erased from the state of the stream's stage."""
    erasure_rows = rows_of(scope.warehouse / ERASURES_FOLDER / scope.plan.name, scope.upto)
    rewritten = (
        [] if erasure_rows is None else erasure_rows.filter(erasure_rows.column("rewritten")).to_pylist()
    )
    return sorted({(tuple(row["fields"].split(", ")), row["key_digest"]) for row in rewritten})


def exclude_erased_rows(rows: pa.Table, stream: str, erased_keys: Sequence[ErasedKey]) -> pa.Table:
    """Return the rows whose key was not erased."""
    import polars as pl

    for fields in {fields for fields, _ in erased_keys}:
        digests = {key_digest for names, key_digest in erased_keys if names == fields}
        keys = pl.DataFrame(pl.from_arrow(rows.select(fields))).unique()
        is_erased = [not digests.isdisjoint(_key_digests(stream, key)) for key in keys.iter_rows(named=True)]
        frame = pl.DataFrame(pl.from_arrow(rows))
        rows = frame.join(
            keys.filter(pl.Series(is_erased, dtype=pl.Boolean)), on=list(fields), how="anti"
        ).to_arrow()
    return rows


def _key_digests(stream: str, key: dict[str, object]) -> Iterator[str]:
    """Return the digests of a key, one for each way to write its values."""
    for texts in product(*map(_text_forms, key.values())):
        yield digest_key(stream, dict(zip(key, texts, strict=True)))


def _text_forms(value: object) -> Sequence[str]:
    match value:
        case None:
            return ()
        case bool():
            return (str(value).lower(),)
        case float() if value.is_integer():
            return (repr(value), str(int(value)))
        case _:
            return (str(value),)
