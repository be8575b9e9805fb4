"""Server-sent events of servers that ignore the last event id."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count

import pytest
from tests.http_server import run_http_server

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources.batching import MAX_BATCH_BYTES
from penstock.ingestion.sources.line_batches import make_json_batch
from penstock.ingestion.sources.source import read_rest
from penstock.ingestion.sources.sse import SseSource


def make_handler_without_history(events: Iterator[bytes]) -> type[BaseHTTPRequestHandler]:
    """Answer with the next three events, and ignore the last event id of the reader."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(ConnectionError):
                for _ in range(3):
                    self.wfile.write(next(events))

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def generate_numbered_events() -> Iterator[bytes]:
    return (b"id: e%d\ndata: %d\n\n" % (n, n) for n in count())


def collect_values(stream: Iterator[SourceBatch]) -> list[bytes]:
    return [value for batch in stream for value in batch.values]


def test_a_new_event_is_not_taken_for_one_that_the_server_lost():
    with run_http_server(make_handler_without_history(generate_numbered_events())) as url:
        source = SseSource(url, make_json_batch)
        *_, last = (batch for batch in source.read(None) if len(batch))
        assert collect_values(read_rest(source, last.position_after, 0)) == [b"3", b"4", b"5"]
        with pytest.raises(SourceError, match="no longer has"):
            collect_values(read_rest(source, last.position, len(last)))


def test_a_batch_with_an_event_without_id_has_no_position():
    events = iter([b"id: a\ndata: 1\n\n", b"data: 2\n\n", b"id: b\ndata: 3\n\n"])
    with run_http_server(make_handler_without_history(events)) as url:
        batches = [batch for batch in SseSource(url, make_json_batch).read(None) if len(batch)]
    without_id = [batch for batch in batches if b"2" in batch.values]
    assert [(batch.position, batch.position_after) for batch in without_id] == [(None, None)]


def test_batches_of_large_events_are_bounded():
    events = (b"id: e%d\ndata: %s\n\n" % (n, b"x" * 3_000_000) for n in count())
    with run_http_server(make_handler_without_history(events)) as url:
        batches = list(SseSource(url, make_json_batch).read(None))
    assert sum(map(len, batches)) == 3
    assert max(sum(map(len, batch.values)) for batch in batches) < MAX_BATCH_BYTES + 3_000_000
