"""The reading that viewers share: figures each second, notes seldom, but those of changed streams at once."""

import pytest
from tests.platform.console.conftest import NOW_MS, start_stream

from penstock.engine.host.control import StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.console import stack_reader
from penstock.platform.console.stack_reader import NOTES_INTERVAL_MS, READ_INTERVAL_MS, StackReader
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import StreamOverview
from penstock.platform.settings import Settings
from penstock.platform.stack.stack_view import StackView
from penstock.platform.stack.stream_condition import describe_note


class DescribedStreams:
    """Remembers which streams got a new note."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, view: StackView, stream: StreamOverview) -> str:
        self.names.append(stream.stream)
        return describe_note(view, stream)

    def take(self) -> list[str]:
        """Return the streams since the last call."""
        names, self.names = sorted(self.names), []
        return names


def test_only_changed_streams_get_new_notes(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    described, now_ms = DescribedStreams(), [NOW_MS]
    monkeypatch.setattr(stack_reader, "describe_note", described)
    reader = StackReader(settings, store, lambda: now_ms[0])
    for name in ("sensor_minute", "word_count"):
        start_stream(store, name)
    reader.read()
    assert described.take() == ["sensor_minute", "word_count"]

    store.report_health(StreamHealth("word_count", StreamState.RETRYING, "it failed", NOW_MS, 1))
    now_ms[0] += READ_INTERVAL_MS
    assert reader.read().notes["word_count"] == "it failed"
    assert described.take() == ["word_count"]

    now_ms[0] += READ_INTERVAL_MS
    assert reader.read().notes["word_count"] == "it failed"
    assert described.take() == []

    now_ms[0] += NOTES_INTERVAL_MS
    reader.read()
    assert described.take() == ["sensor_minute", "word_count"]
