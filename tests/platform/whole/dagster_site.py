"""Two guarded webservers of Dagster, and nginx in front of them, with `platform/access/nginx.conf`."""

import base64
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.ports import accepts_connections, find_free_ports

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
WEB_SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "graphql-ws",
}


@dataclass(frozen=True)
class Answer:
    """A response of one of the servers."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class DagsterSite:
    """The ports of nginx and of the webserver for operators, and the folder of nginx."""

    front: int
    operators: int
    folder: Path
    sessions: dict[str, str] = field(default_factory=dict)

    def ask_dagster(
        self, path: str, headers: Mapping[str, str], body: bytes | None = None, method: str | None = None
    ) -> Answer:
        """Send a request to the webserver, past nginx."""
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.operators, timeout=PATIENCE_S)
        ) as connection:
            return _send(connection, path, headers, body, method)

    def ask_nginx(
        self,
        path: str,
        user: str | None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        password: str = PASSWORD,
    ) -> Answer:
        """Send a request to nginx over TLS, as a user."""
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        log_in = {"Authorization": f"Basic {credentials}"} if user else {}
        context = ssl._create_unverified_context()
        with closing(
            http.client.HTTPSConnection("127.0.0.1", self.front, timeout=PATIENCE_S, context=context)
        ) as connection:
            return _send(connection, path, {**log_in, **(headers or {})}, body, None)

    def log_in(self, user: str) -> dict[str, str]:
        """Return the cookie that the browser of a user got with its first page."""
        if user not in self.sessions:
            answer = self.ask_nginx("/", user)
            assert answer.status == 200
            self.sessions[user] = answer.headers["Set-Cookie"].partition(";")[0]
        return {"Cookie": self.sessions[user]}

    def read_actions(self) -> list[dict[str, object]]:
        """Return the lines of nginx's access log."""
        return [json.loads(line) for line in (self.folder / "access.log").read_text("utf-8").splitlines()]


def _send(
    connection: http.client.HTTPConnection,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    method: str | None,
) -> Answer:
    connection.request(method or ("POST" if body is not None else "GET"), path, body, dict(headers))
    response = connection.getresponse()
    content = b"" if response.status == 101 else response.read()
    return Answer(response.status, response.headers, content)  # type: ignore[arg-type]


@contextmanager
def run_dagster_site(nginx: str) -> Iterator[DagsterSite]:
    """Run both webservers and nginx until the end of the context."""
    # nginx runs as another user, who cannot read pytest's folders.
    folder = Path(tempfile.mkdtemp(prefix="access-"))
    operators, viewers, front = find_free_ports(3)
    config = CONFIG.read_text("utf-8")
    for before, port in (("127.0.0.1:3000", operators), ("127.0.0.1:3001", viewers)):
        config = config.replace(before, f"127.0.0.1:{port}")
    (folder / "nginx.conf").write_text(config.replace("listen 8443", f"listen 127.0.0.1:{front}"), "utf-8")
    _prepare(folder)
    (folder / "defs.py").write_text(DEFINITIONS, "utf-8")
    (folder / "home").mkdir()
    module = [sys.executable, "-m", "penstock.infra.dagster_webserver", "--allow-host", "dagster.internal"]
    webserver = [*module, "-f", str(folder / "defs.py"), "-h", "127.0.0.1", "-p"]
    environment = {**os.environ, "DAGSTER_HOME": str(folder / "home"), "DAGSTER_DISABLE_TELEMETRY": "1"}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        # In this order: the first webserver creates the storage that the second one uses.
        for command, port in (
            ([*webserver, str(operators)], operators),
            ([*webserver, str(viewers), "--read-only"], viewers),
            ([nginx, "-p", str(folder), "-c", "nginx.conf"], front),
        ):
            processes.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            wait_until(
                partial(accepts_connections, "127.0.0.1", port),
                PATIENCE_S,
                f"{command[0]} on {port} to answer",
            )
        yield DagsterSite(front, operators, folder)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(PATIENCE_S)
        shutil.rmtree(folder)


def _prepare(folder: Path) -> None:
    """Create certificate, users, operators and session as the comment of nginx.conf says."""
    make = (
        "req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=dagster -keyout key.pem -out certificate.pem"
    )
    subprocess.run(["openssl", *make.split()], cwd=folder, check=True, capture_output=True)
    query = ["openssl", "passwd", "-6", "-stdin"]
    result = subprocess.run(query, input=PASSWORD, capture_output=True, text=True, check=True)
    (folder / "users").write_text("".join(f"{name}:{result.stdout.strip()}\n" for name in ("alice", "bob")))
    (folder / "operators").write_text("alice operators;\n")
    (folder / "session").write_text("default 00112233445566778899aabbccddeeff;\n")
    for readable in (folder, *folder.iterdir()):
        readable.chmod(0o755 if readable.is_dir() else 0o644)
