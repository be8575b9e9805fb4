"""Fetching the jars: from a repository of the test's own, on this machine, through the real Ivy."""

import hashlib
import http.server
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.infra import jars as jars_module
from penstock.infra.errors import JarDownloadError, JarLockError, JarMismatchError
from penstock.infra.jars import ensure_jars, find_missing_jars, read_jar_lock
from penstock.infra.ports import find_free_ports

NAMES = {"org.one:first_2.13:1.0": "spark", "org.two:second:2.1": "spark", "org.one:first_2.13:1.1": "kafka"}


@dataclass
class Repository:
    """A Maven repository that can be told to misbehave."""

    port: int
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    stalled: threading.Event = field(default_factory=threading.Event)
    stall: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture
def repository() -> Iterator[Repository]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = served.files.get(self.path)
            served.asked.append(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if content is None or self.command == "HEAD":
                return
            if served.stall.is_set():
                served.stalled.set()
                served.stall.wait(30)
            self.wfile.write(content[: served.cut_after])

        do_HEAD = do_GET  # noqa: N815  the name that the server looks for

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Repository(server.server_port)
        for name in NAMES:
            served.files[_path(name)] = name.encode() * 5000
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    lines = [
        f"{hashlib.sha256(name.encode() * 5000).hexdigest()}  {name}  {kind}" for name, kind in NAMES.items()
    ]
    path = tmp_path / "jars.lock"
    path.write_text("# made by hand\n" + "\n".join(lines) + "\n")
    return path


def _path(name: str) -> str:
    group, artifact, version = name.split(":")
    return f"/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def _held(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


ALL = {"first_2.13-1.0.jar", "second-2.1.jar", "first_2.13-1.1.jar"}


@pytest.mark.whole
def test_every_jar_of_the_lock_comes_and_then_nobody_is_asked_again(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    seen: list[str] = []
    jars = ensure_jars(
        tmp_path / "j",
        progress=lambda *step: seen.append(step[2]),
        lock_file=lock,
        repository=repository.address,
    )
    assert _held(tmp_path / "j") == ALL == {jar.name for jar in jars}
    assert len(seen) == 3
    repository.asked.clear()
    assert ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address) == jars
    assert repository.asked == []


@pytest.mark.whole
def test_only_what_is_missing_or_damaged_is_fetched(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    folder = tmp_path / "j"
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    with (folder / "second-2.1.jar").open("r+b") as jar:
        jar.truncate(100)
    assert find_missing_jars(folder, lock_file=lock) == ["second-2.1.jar"]
    repository.asked.clear()
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    assert {path for path in repository.asked if path.endswith(".jar")} == {_path("org.two:second:2.1")}
    assert find_missing_jars(folder, lock_file=lock) == []


@pytest.mark.whole
def test_a_jar_with_another_hash_is_named_and_not_kept(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    repository.files[_path("org.two:second:2.1")] = b"something else"
    with pytest.raises(JarMismatchError, match=r"another SHA-256 .* second-2.1.jar"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _held(tmp_path / "j") == ALL - {"second-2.1.jar"}


@pytest.mark.whole
def test_a_download_that_is_cut_off_leaves_no_jar(tmp_path: Path, repository: Repository, lock: Path) -> None:
    repository.cut_after = 1000
    with pytest.raises((JarDownloadError, JarMismatchError)):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _held(tmp_path / "j") == set()


@pytest.mark.whole
def test_a_jar_that_the_repository_does_not_hold_is_named(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    del repository.files[_path("org.two:second:2.1")]
    with pytest.raises(JarDownloadError, match=r"1 of 3 jars .* second-2.1.jar .* does not hold them"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _held(tmp_path / "j") == ALL - {"second-2.1.jar"}


@pytest.mark.whole
def test_without_a_network_one_sentence_says_so(tmp_path: Path, lock: Path) -> None:
    [port] = find_free_ports(1)
    with pytest.raises(JarDownloadError, match="is there a network"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=f"http://127.0.0.1:{port}/")
    assert _held(tmp_path / "j") == set()


@pytest.mark.whole
def test_a_fetch_that_is_killed_leaves_nothing_running_and_the_next_one_clears_up(
    tmp_path: Path,
    repository: Repository,
    lock: Path,
    eventually: Callable[..., None],
    left: Callable[[], list[object]],
) -> None:
    folder = tmp_path / "j"
    repository.stall.set()
    code = (
        "import sys; from pathlib import Path; from penstock.infra.jars import ensure_jars\n"
        "ensure_jars(Path(sys.argv[1]), lock_file=Path(sys.argv[2]), repository=sys.argv[3])"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder, lock, repository.address]) as fetching:
        assert repository.stalled.wait(30)
        os.kill(fetching.pid, signal.SIGKILL)
    eventually(lambda: left() == [])
    repository.stall.clear()
    assert any(name.startswith(".incoming-") for name in _held(folder))
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    assert _held(folder) == ALL


@pytest.mark.whole
def test_a_full_disk_is_named_and_leaves_no_jar(tmp_path: Path, repository: Repository, lock: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be made here: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(JarDownloadError, match="needs 300 MB"):
            ensure_jars(folder, lock_file=lock, repository=repository.address)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(jars_module, "REQUIRED_FREE_BYTES", 0)
            with pytest.raises(JarDownloadError, match=r"disk is full|No space left"):
                ensure_jars(folder, lock_file=lock, repository=repository.address)
        assert all((folder / name).read_bytes() for name in _held(folder))
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("line", ["abc", "0" * 64 + "  a:b  spark", "0" * 64 + "  a:b:1  cheese"])
def test_a_line_of_the_lock_that_cannot_be_read_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "jars.lock").write_text(f"# first\n{line}\n")
    with pytest.raises(JarLockError, match=r"Line 2 of .*jars.lock"):
        read_jar_lock(tmp_path / "jars.lock")


def test_a_lock_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(JarLockError, match="No such file"):
        read_jar_lock(tmp_path / "jars.lock")


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path, lock: Path) -> None:
    (tmp_path / "j").write_text("")
    with pytest.raises(JarDownloadError, match=r"cannot be put into .*j: "):
        ensure_jars(tmp_path / "j", lock_file=lock)
