"""Downloads of jars by the real Ivy from a repository on this machine."""

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
from tests.http_server import run_http_server

from penstock.infra import jars as jars_module
from penstock.infra.errors import JarDownloadError, JarLockError, JarMismatchError
from penstock.infra.jars import ensure_jars, find_missing_jars, read_jar_lock
from penstock.infra.ports import find_free_ports

JAR_SETS = {
    "org.one:first_2.13:1.0": "spark",
    "org.two:second:2.1": "spark",
    "org.one:first_2.13:1.1": "kafka",
}


@dataclass
class Repository:
    """A Maven repository that can truncate and delay its answers."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    truncate_after: int | None = None
    stalled: threading.Event = field(default_factory=threading.Event)
    stall: threading.Event = field(default_factory=threading.Event)
    requested_paths: list[str] = field(default_factory=list)


@pytest.fixture
def repository() -> Iterator[Repository]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = served.files.get(self.path)
            served.requested_paths.append(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if content is None or self.command == "HEAD":
                return
            if served.stall.is_set():
                served.stalled.set()
                served.stall.wait(30)
            self.wfile.write(content[: served.truncate_after])

        do_HEAD = do_GET  # noqa: N815  the name that the server looks for

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    served = Repository(files={_jar_path(name): name.encode() * 5000 for name in JAR_SETS})
    with run_http_server(Handler) as address:
        served.address = f"{address}/"
        yield served


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    lines = [
        f"{hashlib.sha256(name.encode() * 5000).hexdigest()}  {name}  {kind}"
        for name, kind in JAR_SETS.items()
    ]
    path = tmp_path / "jars.lock"
    path.write_text("# made by hand\n" + "\n".join(lines) + "\n")
    return path


def _jar_path(name: str) -> str:
    group, artifact, version = name.split(":")
    return f"/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def _list_jars(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


ALL_FILES = {"first_2.13-1.0.jar", "second-2.1.jar", "first_2.13-1.1.jar"}


@pytest.mark.whole
def test_every_jar_is_downloaded_once(tmp_path: Path, repository: Repository, lock: Path) -> None:
    steps: list[str] = []
    jars = ensure_jars(
        tmp_path / "j",
        progress=lambda *step: steps.append(step[2]),
        lock_file=lock,
        repository=repository.address,
    )
    assert _list_jars(tmp_path / "j") == ALL_FILES == {jar.name for jar in jars}
    assert len(steps) == 3
    repository.requested_paths.clear()
    assert ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address) == jars
    assert repository.requested_paths == []


@pytest.mark.whole
def test_only_missing_or_damaged_jars_are_downloaded(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    folder = tmp_path / "j"
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    with (folder / "second-2.1.jar").open("r+b") as jar:
        jar.truncate(100)
    assert find_missing_jars(folder, lock_file=lock) == ["second-2.1.jar"]
    repository.requested_paths.clear()
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    assert {path for path in repository.requested_paths if path.endswith(".jar")} == {
        _jar_path("org.two:second:2.1")
    }
    assert find_missing_jars(folder, lock_file=lock) == []


@pytest.mark.whole
def test_a_jar_with_a_wrong_hash_is_named_and_removed(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    repository.files[_jar_path("org.two:second:2.1")] = b"something else"
    with pytest.raises(JarMismatchError, match=r"another SHA-256 .* second-2.1.jar"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _list_jars(tmp_path / "j") == ALL_FILES - {"second-2.1.jar"}


@pytest.mark.whole
def test_a_truncated_download_leaves_no_jar(tmp_path: Path, repository: Repository, lock: Path) -> None:
    repository.truncate_after = 1000
    with pytest.raises((JarDownloadError, JarMismatchError)):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _list_jars(tmp_path / "j") == set()


@pytest.mark.whole
def test_a_jar_missing_from_the_repository_is_named(
    tmp_path: Path, repository: Repository, lock: Path
) -> None:
    del repository.files[_jar_path("org.two:second:2.1")]
    with pytest.raises(JarDownloadError, match=r"1 of 3 jars .* second-2.1.jar .* does not hold them"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=repository.address)
    assert _list_jars(tmp_path / "j") == ALL_FILES - {"second-2.1.jar"}


@pytest.mark.whole
def test_without_a_network_the_error_says_so(tmp_path: Path, lock: Path) -> None:
    [port] = find_free_ports(1)
    with pytest.raises(JarDownloadError, match="is there a network"):
        ensure_jars(tmp_path / "j", lock_file=lock, repository=f"http://127.0.0.1:{port}/")
    assert _list_jars(tmp_path / "j") == set()


@pytest.mark.whole
def test_a_killed_download_leaves_no_process_and_is_cleaned_up_by_the_next(
    tmp_path: Path,
    repository: Repository,
    lock: Path,
    eventually: Callable[..., None],
    list_remaining_processes: Callable[[], list[object]],
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
    eventually(lambda: list_remaining_processes() == [])
    repository.stall.clear()
    assert any(name.startswith(".incoming-") for name in _list_jars(folder))
    ensure_jars(folder, lock_file=lock, repository=repository.address)
    assert _list_jars(folder) == ALL_FILES


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
        assert all((folder / name).read_bytes() for name in _list_jars(folder))
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("line", ["abc", "0" * 64 + "  a:b  spark", "0" * 64 + "  a:b:1  cheese"])
def test_an_invalid_line_of_the_lock_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "jars.lock").write_text(f"# first\n{line}\n")
    with pytest.raises(JarLockError, match=r"Line 2 of .*jars.lock"):
        read_jar_lock(tmp_path / "jars.lock")


def test_a_missing_lock_is_named(tmp_path: Path) -> None:
    with pytest.raises(JarLockError, match="No such file"):
        read_jar_lock(tmp_path / "jars.lock")


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, lock: Path) -> None:
    (tmp_path / "j").write_text("")
    with pytest.raises(JarDownloadError, match=r"cannot be put into .*j: "):
        ensure_jars(tmp_path / "j", lock_file=lock)
