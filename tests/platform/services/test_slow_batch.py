"""A batch that takes long is named by `penstock status`, although its stream runs."""

from pathlib import Path

from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.host.control import DesiredRunState, DesiredState, Lease, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control.reports import StreamOverview
from penstock.platform.services.slow_batch import SLOW_AFTER_MS
from penstock.platform.stack.stack_view import StackView

STARTED_MS = 1_800_000_000_000


def describe(folder: Path, now_ms: int, state: StreamState = StreamState.RUNNING) -> str:
    stream = StreamOverview(
        "s",
        DesiredState("s", DesiredRunState.RUNNING),
        0,
        Lease("s", "host", 1, now_ms + 1),
        None,
        StreamHealth("s", state, "", 0),
    )
    return StackView(now_ms, [], [stream], streams_folder=folder).describe_slow_batch(stream)


def test_a_batch_that_is_not_committed_for_long_is_named_with_its_records(tmp_path: Path) -> None:
    late_ms = STARTED_MS + SLOW_AFTER_MS
    assert describe(tmp_path, late_ms) == "", "it has no batch yet"
    journal = BatchJournal.open_for_writing(tmp_path / "s" / "journal")
    journal.declare_intent(BatchIntent(0, "data", STARTED_MS, 1, (OffsetRange("orders", 0, 0, 3331),), 0))
    assert describe(tmp_path, late_ms - 1) == ""
    assert describe(tmp_path, late_ms) == (
        "not committed after 30 s: batch 0, offsets orders/0 0 to 3331. See `penstock logs --stream s`"
    )
    assert describe(tmp_path, late_ms, StreamState.PAUSED) == ""
    (journal_file,) = (path for path in (tmp_path / "s" / "journal").rglob("*") if path.is_file())
    journal_file.write_text("{")
    assert describe(tmp_path, late_ms) == "", "the host reports a torn file"
