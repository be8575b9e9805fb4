"""Rows of keys that were erased on request: what was forgotten of them no record gives again.

An account of an erasure holds a digest of the key and not the key, so each key of the rows is asked whether it is
the one. It may have been deleted from tables as well, so none of its rows is compared.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import pyarrow as pa

from penstock.pipelines.erasure.account import FOLDER, digest
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.tables import rows as rows_of

Erasure = tuple[tuple[str, ...], str]
"""The fields of a key, and the digest of their values."""


def erasures(scope: Scope) -> list[Erasure]:
    """Return every key that was erased from the state of the stream's stage."""
    told = rows_of(scope.warehouse / FOLDER / scope.plan.name, scope.upto)
    found = [] if told is None else told.filter(told.column("rewritten")).to_pylist()
    return sorted({(tuple(row["fields"].split(", ")), row["key_digest"]) for row in found})


def without_erased(rows: pa.Table, stream: str, erased: Sequence[Erasure]) -> pa.Table:
    """Return the rows whose key was not erased."""
    import polars as pl

    for fields in {fields for fields, _ in erased}:
        digests = {found for names, found in erased if names == fields}
        keys = pl.DataFrame(pl.from_arrow(rows.select(fields))).unique()
        gone = [not digests.isdisjoint(_digests(stream, key)) for key in keys.iter_rows(named=True)]
        frame = pl.DataFrame(pl.from_arrow(rows))
        rows = frame.join(
            keys.filter(pl.Series(gone, dtype=pl.Boolean)), on=list(fields), how="anti"
        ).to_arrow()
    return rows


def _digests(stream: str, key: dict[str, object]) -> Iterator[str]:
    """The digests of a key, in each way in which its values may have been written."""
    for texts in product(*map(_texts, key.values())):
        yield digest(stream, dict(zip(key, texts, strict=True)))


def _texts(value: object) -> Sequence[str]:
    match value:
        case None:
            return ()
        case bool():
            return (str(value).lower(),)
        case float() if value.is_integer():
            return (repr(value), str(int(value)))
        case _:
            return (str(value),)
