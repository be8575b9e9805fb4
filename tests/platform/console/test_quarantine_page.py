"""The quarantine: records by reason, one record, and decisions that are shown before they are carried out."""

import html
import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.platform.console.conftest import NOW_MS, PageReader, open_client
from tests.platform.console.quarantine_tables import write_ledger, write_quarantine

from penstock.platform.console.application import build_context
from penstock.platform.console.decision_plan import editable_text
from penstock.platform.console.quarantine_triage import find_field_value, group_by_reason
from penstock.platform.control import ControlStore
from penstock.platform.services.operator_actions import OperatorAction, read_actions
from penstock.platform.services.quarantine import TopicQuarantine
from penstock.platform.settings import Settings

VALID = {"id": "1", "device": "a", "site": "s", "at": 1, "temperature": 2.5}
HOSTILE = "</textarea></td><script>alert(1)</script><img src=x onerror=alert(2)>"
TOO_WARM = json.dumps({**VALID, "temperature": "warm"}).encode()
DECISION, RECORD = "/quarantine/sensors/decision", "/quarantine/sensors/records/0:2"


@pytest.fixture
def quarantined(settings: Settings) -> Settings:
    """Five invalid records, of which the stream has read all but the last."""
    write_quarantine(
        settings.home,
        (1, b"broken", "malformed"),
        (2, TOO_WARM, "wrong_type:temperature"),
        (3, None, "no_value"),
        (4, f'{{"device":"{HOSTILE}"}}'.encode(), f"check:{HOSTILE}"),
        (5, b"\xff\xfe", "malformed"),
    )
    write_ledger(settings.home, 6)
    return settings


def list_states(settings: Settings) -> dict[str, str]:
    statuses = TopicQuarantine(settings, "sensors").list_quarantined()
    return {str(status.record.position): str(status.state) for status in statuses}


def read_field(page: str, name: str) -> str:
    """Return the value of the first hidden field of a name; empty if the page has none."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    return html.unescape(found[1]) if found else ""


def list_actions(settings: Settings) -> list[OperatorAction]:
    return list(read_actions(settings.home))


class Operator:
    """A browser that asks for a decision, and confirms what it is shown."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.token = read_field(client.get("/quarantine/sensors").text, "token")

    def ask(self, command: str, **fields: str) -> str:
        """Return the page that shows what a decision would do."""
        answer = self.client.post(DECISION, data={"token": self.token, "command": command, **fields})
        assert answer.status_code == 200, answer.text
        return answer.text

    def confirm(self, shown: str, command: str, **fields: str) -> str:
        """Confirm a shown decision, and return where the answer leads."""
        data = {
            "token": self.token,
            "command": command,
            "confirmed": read_field(shown, "confirmed"),
            **fields,
        }
        answer = self.client.post(DECISION, data=data)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


@pytest.fixture
def operator(quarantined: Settings, client: TestClient) -> Operator:
    return Operator(client)


def test_reasons_come_with_counts_and_a_sample_of_the_field(quarantined: Settings) -> None:
    statuses = TopicQuarantine(quarantined, "sensors").list_quarantined()[::-1]
    groups = [
        (group.reason, group.pending, group.field, group.sample_value) for group in group_by_reason(statuses)
    ]
    assert groups == [
        ("malformed", 2, "", "\\xff\\xfe"),
        (f"check:{HOSTILE}".partition(" (")[0], 1, "", f'{{"device":"{HOSTILE}"}}'[:79] + "…"),
        ("no_value", 1, "", ""),
        ("wrong_type:temperature", 1, "temperature", '"warm"'),
    ]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("a", b'{"a": 1}', "1"),
        ("a.b", b'{"a": {"b": [1]}}', "[1]"),
        ("a.b", b'{"a": 5}', "absent"),
        ("a", b"no json", ""),
        ("a", b"[" * 5_000, ""),
        ("a[].b", b'{"a": [{"b": 1}]}', ""),
        ("a", None, ""),
    ],
)
def test_the_value_of_a_field_is_found_by_its_path(path: str, value: bytes | None, text: str) -> None:
    assert find_field_value(path, value) == text


def test_the_pages_show_topics_reasons_and_one_record(quarantined: Settings, read_page: PageReader) -> None:
    index = read_page("/quarantine")
    assert 'href="/quarantine/sensors"' in index
    assert "dead letters are not counted" in index
    page = read_page("/quarantine/sensors")
    assert "Dead letters are not shown. Cannot read sensors.dead-letters" in page
    assert "&#34;warm&#34;" in page
    record = read_page(RECORD)
    assert "expected double, found &#34;warm&#34;" in record
    assert "with its current contract" in record
    assert 'href="/streams/sensor_minute"' in record


def test_records_are_filtered_by_reason_state_and_text(quarantined: Settings, read_page: PageReader) -> None:
    def list_addresses(**query: str) -> list[str]:
        page = read_page("/quarantine/sensors", **query)
        return re.findall(r'<tr data-key="(\d:\d)">', page.partition('id="live_records"')[2])

    assert list_addresses() == ["0:5", "0:4", "0:3", "0:2", "0:1"]
    assert list_addresses(reason="malformed", origin="topic") == ["0:5", "0:1"]
    assert list_addresses(state="discarded") == []
    assert list_addresses(q="warm") == ["0:2"]
    assert list_addresses(q="onerror", state="any") == ["0:4"]


@pytest.mark.parametrize("path", ["/quarantine/sensors", "/quarantine/sensors/records/0:4"])
def test_hostile_records_are_text(quarantined: Settings, client: TestClient, path: str) -> None:
    page = client.get(path).text
    assert "<script>" not in page
    assert "<img src=x" not in page
    assert html.escape("<script>alert(1)</script>") in page


def test_a_hostile_reason_is_text_where_it_is_decided_about(operator: Operator) -> None:
    shown = operator.ask(
        "discard", reason=f"check:{HOSTILE}".partition(" (")[0], origin="topic", why='"><script>'
    )
    assert "<script>" not in shown
    assert "Discard 1 record for good?" in shown


def test_nothing_is_discarded_before_it_was_shown(operator: Operator, quarantined: Settings) -> None:
    shown = operator.ask("discard", reason="malformed", origin="topic")
    assert "Discard 2 records for good?" in shown
    assert "0:1" in shown
    assert set(list_states(quarantined).values()) == {"pending"}
    assert list_actions(quarantined) == []
    location = operator.confirm(shown, "discard", reason="malformed", origin="topic", why="a test")
    assert location == "/quarantine/sensors?decided=2"
    assert list_states(quarantined) == {
        **dict.fromkeys(("0:1", "0:5"), "discarded"),
        **dict.fromkeys(("0:2", "0:3", "0:4"), "pending"),
    }
    (action,) = list_actions(quarantined)
    assert (action.action, action.target, action.origin) == ("quarantine discard", "sensors", "console")
    assert action.details == {"records": 2, "items": ["0:5", "0:1"], "why": "a test"}
    page = operator.client.get(location).text
    assert "Done: 2 decided." in page
    assert "quarantine discard" in page


def test_a_decision_that_has_changed_is_shown_again(operator: Operator, quarantined: Settings) -> None:
    shown = operator.ask("discard", reason="malformed", origin="topic")
    write_quarantine(quarantined.home, (6, b"more", "malformed"))
    again = operator.ask(
        "discard", reason="malformed", origin="topic", confirmed=read_field(shown, "confirmed"), why="a test"
    )
    assert "The records have changed since you were asked" in again
    assert "Discard 3 records for good?" in again
    assert 'value="a test"' in again
    assert set(list_states(quarantined).values()) == {"pending"}


def test_a_confirmation_of_one_decision_is_none_of_another(operator: Operator, quarantined: Settings) -> None:
    shown = operator.ask("discard", address="0:1")
    confirmed = read_field(shown, "confirmed")
    assert "Discard 1 record for good?" in operator.ask("discard", address="0:2", confirmed=confirmed)
    assert set(list_states(quarantined).values()) == {"pending"}


def test_a_record_has_one_decision(operator: Operator) -> None:
    operator.confirm(operator.ask("discard", address="0:1"), "discard", address="0:1")
    again = operator.ask("discard", address="0:1")
    assert "1 selected record has a decision already" in again
    assert "confirmed" not in again
    page = operator.client.get("/quarantine/sensors/records/0:1").text
    assert "discarded" in page
    assert "<textarea" not in page


def test_a_repair_says_what_the_contract_thinks_of_it(operator: Operator, quarantined: Settings) -> None:
    unrepaired = operator.ask("replay", address="0:2", value=TOO_WARM.decode())
    assert "it still violates the contract: wrong_type:temperature" in html.unescape(unrepaired)
    assert "confirmed" not in unrepaired
    repaired = json.dumps(VALID)
    shown = operator.ask("replay", address="0:2", value=repaired)
    assert "Replay 1 record?" in shown
    assert html.escape(repaired).replace("&quot;", "&#34;") in shown
    changed = operator.ask(
        "replay", address="0:2", value=repaired + " ", confirmed=read_field(shown, "confirmed")
    )
    assert "have changed since" in changed
    assert list_actions(quarantined) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"a\nb", "a\nb"),
        (b"a\r\nb", "a\nb"),
        (b"a\rb", None),
        (b"a\0b", None),
        (b"\xff", None),
        (None, ""),
    ],
)
def test_a_form_shows_only_text_that_it_does_not_change(value: bytes | None, text: str | None) -> None:
    assert editable_text(value) == text


def test_a_viewer_may_look_and_not_decide(quarantined: Settings, store: ControlStore, tmp_path: Path) -> None:
    console = quarantined.console.model_copy(update={"role": "viewer"})
    changed = quarantined.model_copy(update={"console": console})
    viewer = open_client(build_context(changed, store, lambda: NOW_MS))
    for path in ("/quarantine/sensors", RECORD):
        assert 'method="post"' not in viewer.get(path).text
    assert viewer.post(DECISION, data={"command": "discard", "address": "0:1"}).status_code == 403


def test_a_decision_without_the_token_of_the_page_is_refused(
    operator: Operator, quarantined: Settings
) -> None:
    confirmed = read_field(operator.ask("discard", address="0:1"), "confirmed")
    data = {"token": "0" * 64, "command": "discard", "address": "0:1", "confirmed": confirmed}
    assert operator.client.post(DECISION, data=data).status_code == 403
    assert set(list_states(quarantined).values()) == {"pending"}


@pytest.mark.parametrize("path", ["/quarantine/nothing", "/quarantine/sensors/records/9:9", f"{RECORD}/x"])
def test_what_is_not_in_quarantine_is_unknown(quarantined: Settings, client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_an_unknown_decision_is_refused(operator: Operator) -> None:
    data = {"token": operator.token, "command": "erase", "address": "0:1"}
    answer = operator.client.post(DECISION, data=data)
    assert answer.status_code == 400
    assert "replay, discard" in answer.text


def test_without_refused_records_the_pages_say_so(read_page: PageReader) -> None:
    assert "Nothing was refused" in read_page("/quarantine")
    assert "Nothing was refused" in read_page("/quarantine/sensors")
