"""The page of a topic: its contract, and records decoded by it; whatever they hold is text."""

import html

import pytest
from starlette.testclient import TestClient
from tests.platform.console.conftest import NOW_MS

from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.ingestion.contracts import load_contract
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.pages.topic import PartitionRow, RecordSearch
from penstock.platform.console.topic_reading import decode_record, find_event_time_ms, open_decoder
from penstock.platform.settings import Settings

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>"


def build_record(value: bytes | None, offset: int = 7) -> StoredRecord:
    return StoredRecord(0, offset, NOW_MS, HOSTILE.encode(), value, {"h": HOSTILE.encode()})


def render_records(context: ConsoleContext, *values: bytes | None) -> str:
    """Return the page of the topic `sensors` with these records."""
    contract = load_contract("sensors")
    decode = open_decoder(context.settings, contract)
    model = {
        "topic": "sensors",
        "contract": contract,
        "fields": contract.fields,
        "partitions": [PartitionRow(0, 0, 1_234_567)],
        "search": RecordSearch("", ""),
        "search_problem": "",
        "searched": 2_000,
        "records": [decode_record(decode, build_record(value)) for value in values],
        "dead_letters": [],
        "readers": ["sensor_minute"],
    }
    return "".join(context.renderer.render_blocks("topic.html", model).values())


def test_hostile_keys_and_values_are_text(context: ConsoleContext) -> None:
    value = f'{{"id":"1","device":"{HOSTILE}","site":"s","at":{NOW_MS}}}'.encode()
    page = render_records(context, value, HOSTILE.encode(), b"\xff\x00<b>")
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("<script>alert(1)</script>") in page
    assert "1,234,567" in page


def test_an_invalid_record_keeps_its_reason(context: ConsoleContext) -> None:
    page = render_records(context, b'{"id": 5}', None)
    assert "no value (a tombstone)" in page
    assert '{"id": 5}' in html.unescape(page)


def test_the_event_time_is_that_of_the_contract(settings: Settings) -> None:
    contract = load_contract("sensors")
    record = open_decoder(settings, contract)(b'{"id":"1","device":"a","site":"s","at":1700000000123}')
    assert find_event_time_ms(contract, record) == 1_700_000_000_123


def test_a_broker_that_is_away_is_named(client: TestClient, settings: Settings) -> None:
    answer = client.get("/topics/sensors")
    assert answer.status_code == 503
    assert "Check that the broker is up" in answer.text


@pytest.mark.parametrize("topic", ["sensor", "../etc", "%3Cb%3E"])
def test_a_topic_without_a_contract_is_unknown(client: TestClient, topic: str) -> None:
    answer = client.get(f"/topics/{topic}")
    assert answer.status_code == 404
    assert "<b>" not in answer.text
