"""Streams whose batch takes long: nothing is committed meanwhile, although the stream runs."""

from pathlib import Path

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.errors import PipelineError
from penstock.engine.stream_folders import resolve_stream_folder

SLOW_AFTER_MS = 30_000
"""A batch that is not committed after this long is worth a note."""


def describe_slow_batch(streams: Path, stream: str, now_ms: int) -> str:
    """Return which batch was started long ago and is not committed; empty if there is none.

    Reads the files of the stream, and changes nothing. The age is that of the first attempt.
    """
    try:
        journal = BatchJournal(resolve_stream_folder(streams, stream) / "journal")
        outcome = journal.read_last_outcome()
        intent = journal.read_intent(0 if outcome is None else outcome.batch_id + 1)
    except PipelineError:
        return ""  # the host reports a damaged file itself
    if intent is None or now_ms - intent.clock < SLOW_AFTER_MS:
        return ""
    age_s = (now_ms - intent.clock) // 1000
    return f"not committed after {age_s:,} s: {intent.description}. See `penstock logs --stream {stream}`"
