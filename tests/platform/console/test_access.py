"""Who may act in the console: roles, tokens of forms, foreign pages, and the headers of every response."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.platform.console.conftest import NOW_MS, open_client, start_stream

from penstock.engine.host.control import DesiredRunState
from penstock.platform.console import application
from penstock.platform.console.application import build_context
from penstock.platform.control import ControlStore
from penstock.platform.services.operator_actions import read_actions
from penstock.platform.settings import Settings

STATE_PATH = "/streams/sensor_minute/state"


def read_token(client: TestClient, path: str = "/streams/sensor_minute", **headers: str) -> str:
    """Return the token of the forms of a page."""
    found = re.search(r'name="token" value="(\w+)"', client.get(path, headers=headers).text)
    return found[1] if found else ""


def read_desired(store: ControlStore) -> DesiredRunState:
    return store.read_desired_states()["sensor_minute"].desired


@pytest.fixture
def running(store: ControlStore) -> ControlStore:
    start_stream(store, "sensor_minute")
    return store


def test_an_operator_pauses_a_stream_and_the_journal_says_who(
    running: ControlStore, client: TestClient, settings: Settings
) -> None:
    token = read_token(client)
    answer = client.post(STATE_PATH, data={"token": token, "command": "pause"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/streams/sensor_minute")
    assert read_desired(running) is DesiredRunState.PAUSED
    (action,) = read_actions(settings.home)
    assert (action.action, action.target, action.origin) == ("stream pause", "sensor_minute", "console")
    page = client.get("/streams/sensor_minute").text
    assert "should be paused" in page
    assert "stream pause" in page


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_a_form_without_the_token_of_the_page_is_refused(
    running: ControlStore, client: TestClient, token: str
) -> None:
    read_token(client)
    answer = client.post(STATE_PATH, data={"token": token, "command": "stop"})
    assert answer.status_code == 403
    assert "not from this console" in answer.text
    assert read_desired(running) is DesiredRunState.RUNNING


def test_the_token_of_another_browser_is_refused(
    running: ControlStore, client: TestClient, context: object
) -> None:
    token = read_token(client)
    other = open_client(context)  # type: ignore[arg-type]
    read_token(other)
    assert other.post(STATE_PATH, data={"token": token, "command": "stop"}).status_code == 403
    assert read_desired(running) is DesiredRunState.RUNNING


def test_a_viewer_sees_no_buttons_and_may_not_act(running: ControlStore, settings: Settings) -> None:
    console = settings.console.model_copy(update={"role": "viewer"})
    changed = settings.model_copy(update={"console": console})
    viewer = open_client(build_context(changed, running, lambda: NOW_MS))
    page = viewer.get("/streams/sensor_minute").text
    assert 'method="post"' not in page
    assert "read-only" in page
    answer = viewer.post(STATE_PATH, data={"command": "stop"})
    assert answer.status_code == 403
    assert read_desired(running) is DesiredRunState.RUNNING


@pytest.mark.parametrize(("user", "is_operator"), [("alice", True), ("bob", False), ("", False)])
def test_behind_a_proxy_its_header_names_the_user(
    running: ControlStore, settings: Settings, user: str, is_operator: bool
) -> None:
    console = settings.console.model_copy(
        update={"user_header": "X-Forwarded-User", "operators": ("alice", "carol")}
    )
    changed = settings.model_copy(update={"console": console})
    client = open_client(build_context(changed, running, lambda: NOW_MS))
    headers = {"X-Forwarded-User": user} if user else {}
    token = read_token(client, **headers)
    assert bool(token) is is_operator
    answer = client.post(STATE_PATH, data={"token": token, "command": "pause"}, headers=headers)
    assert answer.status_code == (303 if is_operator else 403)
    assert [action.user for action in read_actions(settings.home)] == (["alice"] if is_operator else [])


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example"},
        {"host": "evil.example"},
    ],
)
def test_pages_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/", headers=headers).status_code == 403
    assert client.post(STATE_PATH, data={"command": "stop"}, headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/", "/streams/sensor_minute", "/static/console.css", "/nowhere"])
def test_every_response_forbids_inline_code_and_other_sites(
    running: ControlStore, client: TestClient, path: str
) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_no_page_has_inline_code() -> None:
    folder = Path(application.__file__).parent / "templates"
    for template in folder.glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?://", text), template


def test_an_unknown_command_is_refused(running: ControlStore, client: TestClient) -> None:
    answer = client.post(STATE_PATH, data={"token": read_token(client), "command": "explode"})
    assert answer.status_code == 400
    assert "start, drain, stop, pause, resume, restart" in answer.text


def test_a_form_that_is_too_long_is_refused(running: ControlStore, client: TestClient) -> None:
    data = {"token": read_token(client), "command": "x" * 70_000}
    assert client.post(STATE_PATH, data=data).status_code == 413
