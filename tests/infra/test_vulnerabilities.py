"""The scan of dependencies: each package and jar is asked for, and a missing database is named and no failure."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.infra import vulnerabilities
from penstock.infra.ports import find_free_ports
from penstock.infra.vulnerabilities import Dependency, list_dependencies, main

FINDING = "GHSA-0000-1111-2222"


@contextmanager
def serve_database(vulnerable: str, requests: list[dict[str, Any]], status: int = 200) -> Iterator[str]:
    """Serve a database that knows one vulnerability of one package."""

    class Database(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            requests.extend(queries)
            results = [
                {"vulns": [{"id": FINDING}]} if query["package"]["name"] == vulnerable else {}
                for query in queries
            ]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Database) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_every_locked_package_and_jar_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    requests: list[dict[str, Any]] = []
    with serve_database("", requests) as url:
        assert main(url) == 0
    asked = {
        Dependency(query["package"]["ecosystem"], query["package"]["name"], query["version"])
        for query in requests
    }
    assert asked == set(list_dependencies())
    assert {"dagster", "org.apache.kafka:kafka-clients"} <= {dependency.name for dependency in asked}
    assert capsys.readouterr().out.endswith(" 0 with vulnerabilities that are not accepted\n")


def test_a_vulnerability_fails_the_scan_until_it_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_database("msgspec", []) as url:
        assert main(url) == 1
        assert (
            f": https://osv.dev/vulnerability/{FINDING}. Update the lock, or write" in capsys.readouterr().err
        )
        accepted = tmp_path / "accepted.toml"
        accepted.write_text(f'{FINDING} = "not called"\n', "utf-8")
        monkeypatch.setattr(vulnerabilities, "ACCEPTED_FILE", accepted)
        assert main(url) == 0


def test_nothing_is_sent_unless_a_database_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("") == 0
    assert capsys.readouterr().out.startswith("dependency scan skipped: PENSTOCK_OSV_URL is not set")


def test_a_database_that_does_not_answer_is_named_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = find_free_ports(1)
    assert main(f"http://127.0.0.1:{port}") == 0
    text = capsys.readouterr().out
    assert text.startswith(
        f"dependency scan skipped: the database at http://127.0.0.1:{port} does not answer ("
    )
    with serve_database("", [], status=503) as url:
        assert main(url) == 0
    assert "Service Unavailable" in capsys.readouterr().out
