"""Server-sent events of servers that remember less than is asked of them."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count

import pytest
from tests.ingestion.serving import http_server

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer import Batch
from penstock.ingestion.sources.cutting import BATCH_BYTES
from penstock.ingestion.sources.lines import json_batch
from penstock.ingestion.sources.source import rest_of
from penstock.ingestion.sources.sse import ServerSentEvents


def forgetful(events: Iterator[bytes]) -> type[BaseHTTPRequestHandler]:
    """Answer with the next three events, whatever was the last one that the reader knows."""

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


def numbered() -> Iterator[bytes]:
    return (b"id: e%d\ndata: %d\n\n" % (n, n) for n in count())


def values_in(stream: Iterator[Batch]) -> list[bytes]:
    return [value for batch in stream for value in batch.values]


def test_of_a_server_that_remembers_nothing_no_new_event_is_taken_for_one_that_was_sent():
    with http_server(forgetful(numbered())) as url:
        source = ServerSentEvents(url, json_batch)
        *_, last = (batch for batch in source.read(None) if len(batch))
        assert values_in(rest_of(source, last.after, 0)) == [b"3", b"4", b"5"]
        with pytest.raises(SourceError, match="no longer has"):
            values_in(rest_of(source, last.position, len(last)))


def test_an_event_without_an_id_of_its_own_gives_its_batch_no_position():
    events = iter([b"id: a\ndata: 1\n\n", b"data: 2\n\n", b"id: b\ndata: 3\n\n"])
    with http_server(forgetful(events)) as url:
        found = [batch for batch in ServerSentEvents(url, json_batch).read(None) if len(batch)]
    unsure = [batch for batch in found if b"2" in batch.values]
    assert [(batch.position, batch.after) for batch in unsure] == [(None, None)]


def test_large_events_are_not_gathered_without_end():
    events = (b"id: e%d\ndata: %s\n\n" % (n, b"x" * 3_000_000) for n in count())
    with http_server(forgetful(events)) as url:
        batches = list(ServerSentEvents(url, json_batch).read(None))
    assert sum(map(len, batches)) == 3
    assert max(sum(map(len, batch.values)) for batch in batches) < BATCH_BYTES + 3_000_000
