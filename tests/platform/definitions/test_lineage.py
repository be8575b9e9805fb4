"""What OpenLineage is told, by its official client, into a file and over HTTP."""

import json
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from dagster import SkipReason, build_sensor_context
from tests.platform.definitions.conftest import contract

from penstock.pipelines import catalog
from penstock.pipelines.host.control import BatchRecord
from penstock.pipelines.plan import Plan
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import read_by_topic, summarise
from penstock.platform.definitions.lineage import lineage_definitions
from penstock.platform.definitions.pipeline import Pipeline
from penstock.platform.lineage import Places, client_of, event_of
from penstock.platform.settings.model import LineageSettings

PLACES = Places("penstock", "broker-1:9092,broker-2:9092", "/warehouse")


@pytest.fixture
def send(example: Callable[[str], Plan]) -> Callable[..., None]:
    field = replace(contract().fields[0], personal=True)
    declared = replace(contract(), owner="team:sensors", fields=(field, *contract().fields[1:]))

    def sent(pipeline: Pipeline, summary: Any, to: LineageSettings) -> None:
        read = {"sensors": summary.read}
        event = event_of(summary, read, pipeline.plan, pipeline.description, {"sensors": declared}, PLACES)
        client_of(to).emit(event)

    return sent


def tell(
    store: ControlStore, example: Callable[[str], Plan], send: Callable[..., None], to: LineageSettings
) -> str:
    pipelines = [Pipeline(example("minute"), "A mean a minute.")]
    (sensor,) = lineage_definitions(pipelines, lambda: store, lambda *told: send(*told, to)).sensors or []
    context = build_sensor_context()
    said = sensor._raw_fn(context)
    assert isinstance(said, SkipReason)
    return context.cursor or ""


def test_a_run_of_a_stream_is_told_from_its_topics_to_its_tables(
    store: ControlStore, sample: Callable[[int], BatchRecord], example, send, tmp_path: Path
) -> None:
    for number in range(3):
        store.record_batch(sample(number))
    file = tmp_path / "lineage" / "events.jsonl"
    assert json.loads(tell(store, example, send, LineageSettings(to=f"file:{file}"))) == {"minute": 2}
    event = json.loads(file.read_text("utf-8"))
    assert (event["eventType"], event["job"]["namespace"], event["job"]["name"]) == (
        "COMPLETE",
        "penstock",
        "minute",
    )
    (topic,) = event["inputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://broker-1:9092", "sensors")
    described = topic["facets"]["schema"]["fields"][0]
    assert {key: described[key] for key in ("name", "type", "description")} == {
        "name": "device", "type": "string", "description": "Which device."
    }  # fmt: skip
    assert topic["facets"]["tags"]["tags"][0]["field"] == "device"
    assert topic["facets"]["ownership"]["owners"][0]["name"] == "team:sensors"
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 30
    tables = {table["name"]: table for table in event["outputs"]}
    assert set(tables) == {"/warehouse/latest/minute", "/warehouse/panes/minute"}
    lineage = tables["/warehouse/latest/minute"]["facets"]["columnLineage"]["fields"]
    assert {column: [one["field"] for one in told["inputFields"]] for column, told in lineage.items()} == {
        "device": ["device"],
        "temperature": ["temperature"],
    }
    # Three batches showed three panes each; how many windows they are nobody counts.
    counted = tables["/warehouse/panes/minute"]["outputFacets"]["outputStatistics"]["rowCount"]
    assert (counted, tables["/warehouse/latest/minute"].get("outputFacets") or {}) == (9, {})


def test_records_are_counted_by_topic_over_all_batches_that_are_told(
    store: ControlStore, sample: Callable[[int], BatchRecord]
) -> None:
    for number in range(3):
        (one,) = sample(number).accounts
        other = replace(one, topic="clicks", end=one.start + 5, read=5, folded=4)
        store.record_batch(replace(sample(number), accounts=(one, other)))
    summary = summarise(store, "minute", 0)
    assert summary is not None
    assert read_by_topic(store, summary) == {"sensors": 20, "clicks": 10}


def test_columns_of_a_later_stage_are_told_by_the_fields_of_its_topics(
    store: ControlStore, sample: Callable[..., BatchRecord]
) -> None:
    plan = catalog.load("hashtags")
    store.record_batch(sample(0, "hashtags"))
    summary = summarise(store, "hashtags", -1)
    assert summary is not None
    event = event_of(summary, {}, plan, "", {}, PLACES)
    fields = {
        table.name.rpartition("/")[2]: {
            column: sorted(each.field for each in told.inputFields)
            for column, told in table.facets["columnLineage"].fields.items()
        }
        for table in event.outputs
    }
    assert fields["hashtag_counts"] == {"tag": ["hashtags"]}
    assert fields["hashtags"] == {"typed": ["hashtags"], "suggestions": ["hashtags"]}


def test_the_same_batches_are_the_same_run(
    store: ControlStore, sample: Callable[[int], BatchRecord], example
) -> None:
    store.record_batch(sample(0))
    summary = summarise(store, "minute", -1)
    assert summary is not None
    one, other = (event_of(summary, {}, example("minute"), "", {}, PLACES).run.runId for _ in range(2))
    assert one == other
    store.record_batch(sample(1))
    later = summarise(store, "minute", -1)
    assert later is not None
    assert event_of(later, {}, example("minute"), "", {}, PLACES).run.runId != one


class Receiver(BaseHTTPRequestHandler):
    """Takes what it is sent."""

    heard: ClassVar[list[tuple[str, str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.path, self.headers.get("Authorization", ""), json.loads(body)))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_events_are_sent_over_http_with_a_key_that_no_setting_holds(
    store: ControlStore, sample: Callable[[int], BatchRecord], example, send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "secret")
    store.record_batch(sample(0))
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        to = LineageSettings(to=f"http://127.0.0.1:{server.server_port}", key="env:LINEAGE_KEY")
        tell(store, example, send, to)
    finally:
        server.shutdown()
        server.server_close()
    ((path, key, event),) = Receiver.heard
    assert (path, key, event["job"]["name"]) == ("/api/v1/lineage", "Bearer secret", "minute")
