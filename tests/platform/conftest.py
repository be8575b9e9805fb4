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
def remove_caller_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings of the shell that runs the tests."""
    for name in iter_setting_names():
        monkeypatch.delenv(variable_name(name), raising=False)


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server for the tests."""

    folder: Path
    programs: Path
    port: int
    user: str | None

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the server, as another user if the tests run as root."""
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=self.user, cwd=self.folder, timeout=60)

    def start(self) -> None:
        """Start the server."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k '' -c fsync=off"
        self.run("pg_ctl", "-D", "data", "-l", "server.log", "-o", options, "-w", "start")

    def stop(self) -> None:
        """Stop the server immediately, as a failing machine does."""
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the server: its connections stay, and it does not answer."""
        master = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        master.suspend()  # first, so that it starts no other process
        processes = [master, *master.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                process.resume()

    def database(self, name: str) -> str:
        """Create an empty database and return its address."""
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "tests", name)
        return f"postgresql://tests@127.0.0.1:{self.port}/{name}"

    def database_with_password(self, name: str, user: str) -> str:
        """Create an empty database of a user who has to log in, and return its address without the password."""
        address = self.database(name)
        if not self._has_user(user):
            self._execute(f"CREATE ROLE {user} LOGIN")
            rules = self.folder / "data" / "pg_hba.conf"
            rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
            self.run("pg_ctl", "-D", str(self.folder / "data"), "reload")
        self._execute(f"ALTER DATABASE {name} OWNER TO {user}")
        return address.replace("tests@", f"{user}@")

    def set_password(self, user: str, password: str) -> None:
        """Set the password of a user."""
        self._execute(f"ALTER ROLE {user} PASSWORD '{password}'")

    def _has_user(self, user: str) -> bool:
        rules = (self.folder / "data" / "pg_hba.conf").read_text()
        return f"host all {user} " in rules

    def _execute(self, statement: str) -> None:
        connection = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "tests", "-d", "postgres")
        self.run("psql", *connection, "-c", statement)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL; skipped by name where it is not installed."""
    programs = sorted(SERVERS.glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL's programs are not installed: apt-get install postgresql")
    server = _prepare(programs[-1].parent)
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
