"""Who may do what with Dagster, directly on loopback and behind nginx with `platform/access/nginx.conf`."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.dagster_site import WEB_SOCKET, DagsterSite, run_dagster_site

from penstock.core.waiting import wait_until

pytestmark = pytest.mark.whole
Headers = Mapping[str, str]

MAY_LAUNCH = json.dumps(
    {"operationName": "MayLaunch", "query": "query MayLaunch { permissions { permission value } }"}
).encode()
VERSION = "/graphql?query=%7Bversion%7D"
JSON = {"Content-Type": "application/json"}
PAGE_OF_ANOTHER_SITE = {
    "Content-Type": "text/plain",
    "Origin": "https://evil.example",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "no-cors",
    "Sec-Fetch-Dest": "empty",
}
LINK_OF_ANOTHER_SITE = {
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}
ALLOWED_GUESSES = 10
SECONDS_PER_GUESS = 6


@pytest.fixture(scope="module")
def site() -> Iterator[DagsterSite]:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    with run_dagster_site(nginx) as site:
        yield site


def may_launch(site: DagsterSite, user: str) -> bool:
    answer = site.ask_nginx("/graphql", user, {**JSON, **site.log_in(user)}, MAY_LAUNCH)
    permissions = json.loads(answer.body)["data"]["permissions"]
    return {permission["permission"]: permission["value"] for permission in permissions}[
        "launch_pipeline_execution"
    ]


@pytest.mark.parametrize(
    "headers",
    [
        PAGE_OF_ANOTHER_SITE,
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example:13100"},
    ],
    ids=str,
)
def test_a_foreign_page_cannot_steer_dagster_on_loopback(site: DagsterSite, headers: Headers) -> None:
    assert site.ask_dagster(VERSION, headers, b"").status == 403
    assert site.ask_dagster("/graphql", {**headers, **WEB_SOCKET}).status == 403


def test_programs_and_own_pages_use_dagster_on_loopback(site: DagsterSite) -> None:
    own_page = {"Origin": f"http://localhost:{site.operators}", "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, {**own_page, "Host": f"localhost:{site.operators}"}, {"Host": "dagster.internal"}):
        assert b"version" in site.ask_dagster(VERSION, headers, b"").body
        assert site.ask_dagster("/graphql", {**headers, **WEB_SOCKET}).status == 101
    assert site.ask_dagster("/", LINK_OF_ANOTHER_SITE).status == 200


def test_an_unknown_user_is_refused(site: DagsterSite) -> None:
    for user in (None, "mallory"):
        answer = site.ask_nginx("/", user)
        assert answer.status == 401
        assert answer.headers["Strict-Transport-Security"]
        assert answer.headers["Set-Cookie"] is None


def test_a_viewer_sees_the_ui_and_cannot_launch(site: DagsterSite) -> None:
    assert site.ask_nginx("/", "bob").body.startswith(b"<!DOCTYPE html>")
    assert may_launch(site, "bob") is False


def test_an_operator_may_launch(site: DagsterSite) -> None:
    assert may_launch(site, "alice") is True


def test_a_foreign_page_cannot_use_a_stored_log_in(site: DagsterSite) -> None:
    session = site.log_in("alice")
    assert site.ask_nginx(VERSION, "alice", {**session, **PAGE_OF_ANOTHER_SITE}, b"").status == 403
    web_socket = {**session, **WEB_SOCKET, "Origin": "https://evil.example"}
    assert site.ask_nginx("/graphql", "alice", web_socket).status == 403
    assert site.ask_nginx("/", "alice", {**session, **LINK_OF_ANOTHER_SITE}).status == 200


def test_own_pages_use_dagster_behind_nginx(site: DagsterSite) -> None:
    own_page = {"Origin": f"https://127.0.0.1:{site.front}", "Sec-Fetch-Site": "same-origin"}
    session = {**site.log_in("alice"), **own_page}
    assert b"version" in site.ask_nginx(VERSION, "alice", session, b"").body
    assert site.ask_nginx("/graphql", "alice", {**session, **WEB_SOCKET}).status == 101


def test_a_large_launch_reaches_dagster(site: DagsterSite) -> None:
    body = MAY_LAUNCH[:-1] + b', "variables": {"text": "' + b"x" * 2_000_000 + b'"}}'
    assert site.ask_nginx("/graphql", "alice", {**JSON, **site.log_in("alice")}, body).status == 200


def test_the_log_says_who_did_what(site: DagsterSite) -> None:
    query = json.dumps({"operationName": "WhoDidIt", "query": "query WhoDidIt { version }"}).encode()
    assert site.ask_nginx("/graphql", "alice", {**JSON, **site.log_in("alice")}, query).status == 200

    def find_actions() -> list[dict[str, object]]:
        return [action for action in site.read_actions() if action["operation"] == "WhoDidIt"]

    wait_until(
        lambda: bool(find_actions()), PATIENCE_S, "nginx to log the request, which it does after the response"
    )
    (action,) = find_actions()
    assert action.pop("at")
    assert action == {
        "user": "alice",
        "address": "127.0.0.1",
        "request": "POST /graphql HTTP/1.1",
        "operation": "WhoDidIt",
        "status": 200,
    }


def test_passwords_cannot_be_tried_by_the_thousand(site: DagsterSite) -> None:
    """Try 200 passwords on 12 connections, while someone who logged in before goes on."""
    session = site.log_in("alice")
    started_s = time.monotonic()

    def guess(number: int) -> int:
        return site.ask_nginx("/", "alice", password=f"guess-{number}").status

    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(guess, range(200)))
    elapsed_s = time.monotonic() - started_s
    assert set(statuses) <= {401, 429}
    assert statuses.count(401) <= ALLOWED_GUESSES + elapsed_s / SECONDS_PER_GUESS
    assert [site.ask_nginx("/", "alice", session).status for _ in range(30)] == [200] * 30
