"""Authentication and authorization of Dagster behind nginx, with `platform/access/nginx.conf`."""

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.error import HTTPError

import pytest

from penstock.core.waiting import wait_until
from penstock.infra.ports import accepts_connections, find_free_ports

pytestmark = pytest.mark.whole
CONFIG = Path("platform/access/nginx.conf")
PASSWORD = "correct horse"
DEFINITIONS = """
from dagster import Definitions, job, op

@op
def nothing(): pass

@job
def idle(): nothing()

defs = Definitions(jobs=[idle])
"""
MAY_LAUNCH = "{ permissions { permission value } }"


@dataclass(frozen=True)
class Site:
    """nginx in front of two webservers."""

    port: int

    def open(self, path: str, user: str | None, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", body)
        if user:
            credentials = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
            request.add_header("Authorization", f"Basic {credentials}")
        if body:
            request.add_header("Content-Type", "application/json")
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return bytes(answer.read())

    def may_launch(self, user: str) -> bool:
        query = json.dumps({"query": MAY_LAUNCH}).encode()
        permissions = json.loads(self.open("/graphql", user, query))["data"]["permissions"]
        return {permission["permission"]: permission["value"] for permission in permissions}[
            "launch_pipeline_execution"
        ]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    # nginx runs as another user, who cannot read pytest's folders.
    folder = Path(tempfile.mkdtemp(prefix="access-"))
    operators, viewers, front = find_free_ports(3)
    config = CONFIG.read_text("utf-8")
    for before, port in (("127.0.0.1:3000", operators), ("127.0.0.1:3001", viewers)):
        config = config.replace(before, f"127.0.0.1:{port}")
    (folder / "nginx.conf").write_text(config.replace("listen 8443", f"listen 127.0.0.1:{front}"), "utf-8")
    prepare(folder)
    (folder / "defs.py").write_text(DEFINITIONS, "utf-8")
    (folder / "home").mkdir()
    webserver = [
        sys.executable,
        "-m",
        "dagster_webserver",
        "-f",
        str(folder / "defs.py"),
        "-h",
        "127.0.0.1",
        "-p",
    ]
    environment = {**os.environ, "DAGSTER_HOME": str(folder / "home"), "DAGSTER_DISABLE_TELEMETRY": "1"}
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        # In this order: the first webserver creates the storage that the second one uses.
        for command, port in (
            ([*webserver, str(operators)], operators),
            ([*webserver, str(viewers), "--read-only"], viewers),
            ([nginx, "-p", str(folder), "-c", "nginx.conf"], front),
        ):
            processes.append(subprocess.Popen(command, **options))
            wait_until(
                partial(accepts_connections, "127.0.0.1", port), 60, f"{command[0]} on {port} to answer"
            )
        yield Site(front)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)
        shutil.rmtree(folder)


def prepare(folder: Path) -> None:
    """Create certificate, users and operators as the comment of nginx.conf says."""
    make = (
        "req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=dagster -keyout key.pem -out certificate.pem"
    )
    subprocess.run(["openssl", *make.split()], cwd=folder, check=True, capture_output=True)
    query = ["openssl", "passwd", "-6", "-stdin"]
    result = subprocess.run(query, input=PASSWORD, capture_output=True, text=True, check=True)
    (folder / "users").write_text("".join(f"{name}:{result.stdout.strip()}\n" for name in ("alice", "bob")))
    (folder / "operators").write_text("alice operators;\n")
    for readable in (folder, *folder.iterdir()):
        readable.chmod(0o755 if readable.is_dir() else 0o644)


def test_an_unknown_user_is_refused(site: Site) -> None:
    for user in (None, "mallory"):
        with pytest.raises(HTTPError) as refused:
            site.open("/", user)
        assert refused.value.code == 401
        assert refused.value.headers["Strict-Transport-Security"]
        refused.value.close()


def test_a_viewer_sees_the_ui_and_cannot_launch(site: Site) -> None:
    assert site.open("/", "bob").startswith(b"<!DOCTYPE html>")
    assert site.may_launch("bob") is False


def test_an_operator_may_launch(site: Site) -> None:
    assert site.may_launch("alice") is True
