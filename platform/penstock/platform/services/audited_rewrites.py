"""Finds changes of earlier results that happened while an audit read them."""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import get_args

from penstock.engine.batch.intent import BatchKind
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.errors import JournalError
from penstock.engine.stream_folders import read_unfinished_switch, resolve_stream_folder
from penstock.platform.control import open_control_store
from penstock.platform.control.reports import read_batch_history
from penstock.platform.settings import Settings


def describe_rewrite(settings: Settings, stream: str, upto: int) -> str:
    """Say what changed the results of batches up to `upto` after it was committed; empty for nothing.

    Batches of records and ticks only add to them. A replay, an erasure, a repair and an upgrade change them, and
    each is in the journal, or marked as a switch, before any table has it.
    """
    if replay := read_unfinished_switch(settings.home / "streams", stream):
        return f"replay {replay} switched the tables of {stream}"
    kinds = {number: kind for number, kind in _list_batch_kinds(settings, stream, upto) if number > upto}
    rewrites = sorted(number for number, kind in kinds.items() if kind not in get_args(BatchKind))
    return (
        f"batch {rewrites[0]} ({kinds[rewrites[0]]}) changed earlier results of {stream}" if rewrites else ""
    )


def _list_batch_kinds(settings: Settings, stream: str, upto: int) -> Iterator[tuple[int, str]]:
    journal = resolve_stream_folder(settings.home / "streams", stream) / "journal"
    with suppress(JournalError):  # a damaged journal is a difference that the audit has reported
        yield from ((outcome.batch_id, outcome.kind) for outcome in read_retained_outcomes(journal, upto))
    with closing(open_control_store(settings.control_url, settings.control_secret)) as store:
        yield from ((batch.batch_id, batch.kind) for batch in read_batch_history(store, stream))
