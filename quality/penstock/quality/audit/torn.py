"""Sessions that were cut in two live, and are one when they are computed again.

A session that was closed takes no more records. One that comes within its gap afterwards, and is not late itself,
opens a session of its own, which overlaps the closed one; over stored records the two are one. Neither is wrong, so
what overlaps such a pair is set apart on both sides.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from penstock.quality.audit.tables import milliseconds

Stretch = tuple[tuple[Any, ...], int, int]
"""A key, and the time from the begin of its first session to the end of its last."""


def torn(rows: pa.Table, key: Sequence[str]) -> list[Stretch]:
    """Return the stretches in which sessions of one key overlap or touch."""
    return [
        stretch
        for _, of_key in groupby(_sorted(rows, key), lambda one: one[0])
        for stretch in _overlapping(of_key)
    ]


def without(rows: pa.Table, key: Sequence[str], stretches: Sequence[Stretch]) -> pa.Table:
    """Return rows without those that overlap or touch a stretch of their key."""
    if not stretches or not rows.num_rows:
        return rows
    by_key: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for named, start, end in stretches:
        by_key.setdefault(named, []).append((start, end))
    kept = [
        not any(start <= last and first <= end for first, last in by_key.get(named, ()))
        for named, start, end in _stretches(rows, key)
    ]
    return rows.filter(pa.array(kept, pa.bool_()))


def _overlapping(sessions: Iterator[Stretch]) -> Iterator[Stretch]:
    named, begin, reach = next(sessions)
    count = 1
    for _, start, end in sessions:
        if start <= reach:
            reach, count = max(reach, end), count + 1
            continue
        if count > 1:
            yield named, begin, reach
        begin, reach, count = start, end, 1
    if count > 1:
        yield named, begin, reach


def _sorted(rows: pa.Table, key: Sequence[str]) -> list[Stretch]:
    return sorted(_stretches(rows, key), key=lambda one: (repr(one[0]), one[1], one[2]))


def _stretches(rows: pa.Table, key: Sequence[str]) -> Iterator[Stretch]:
    count = rows.num_rows
    keys = zip(*(rows.column(name).to_pylist() for name in key), strict=True) if key else [()] * count
    bounds = (milliseconds(rows.column(name)).to_pylist() for name in ("window_start", "window_end"))
    yield from zip(keys, *bounds, strict=True)
