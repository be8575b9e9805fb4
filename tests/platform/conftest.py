"""A real PostgreSQL, where its programs are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from penstock.infra.ports import find_free_ports
from penstock.platform.settings.naming import iter_setting_names, variable_name

SERVERS = Path("/usr/lib/postgresql")


@pytest.fixture(autouse=True)
def no_settings_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say what they set; what the shell that runs them sets is not theirs."""
    for name in iter_setting_names():
        monkeypatch.delenv(variable_name(name), raising=False)


@dataclass(frozen=True)
class Postgres:
    """A server of the tests' own, on a port of its own."""

    folder: Path
    programs: Path
    port: int
    user: str | None

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs; it refuses to be run by root, so another user does then."""
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self.folder, timeout=60)

    def start(self) -> None:
        """Start it where it was stopped."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k '' -c fsync=off"
        self.run("pg_ctl", "-D", "data", "-l", "server.log", "-o", options, "-w", "start")

    def stop(self) -> None:
        """Stop it, as a machine does that fails: nobody is told."""
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Have it hang for a while: its connections stay, and nothing is answered."""
        master = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        master.suspend()  # first, so that it begins no other
        family = [master, *master.children(recursive=True)]
        for process in family:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(family):
                process.resume()

    def database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "tests", name)
        return f"postgresql://tests@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL; skipped by name where it is not installed."""
    found = sorted(SERVERS.glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL's programs are not installed: apt-get install postgresql")
    server = _prepare(found[-1].parent)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)


def _prepare(programs: Path) -> Postgres:
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    server = Postgres(folder, programs, find_free_ports(1)[0], user)
    server.run("initdb", "-D", "data", "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    server.start()
    return server
