"""The bootstrap: what it finds lacking, what it does about it, and how it recovers."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from penstock.infra.bootstrap.checkout import BootstrapCheckout
from penstock.infra.bootstrap.main import bootstrap_checkout
from penstock.infra.bootstrap.prerequisites import (
    MissingPrerequisite,
    find_missing_prerequisites,
    install_prerequisites,
)
from penstock.infra.bootstrap.virtual_environment import is_environment_current
from penstock.infra.errors import BootstrapError, JavaMissingError
from penstock.infra.java import find_java
from penstock.infra.ports import find_free_ports

BUILDERS = ("hatchling", "editables", "packaging", "pathspec", "pluggy", "trove-classifiers")
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
    """A small checkout: our lock cut down to what builds a project, our jars, our installer."""
    root = pytestconfig.rootpath
    for folder in ("infra", ".penstock", ".cache"):
        (tmp_path / folder).mkdir()
    (tmp_path / "small.py").write_text("def main(): print('it runs')\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "infra" / "bootstrap.lock").write_text((root / "infra" / "bootstrap.lock").read_text())
    for name in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text(_cut_down((root / name).read_text()))
    (tmp_path / ".penstock" / "jars").symlink_to(root / ".penstock" / "jars")
    if (root / ".cache" / "tools").exists():
        (tmp_path / ".cache" / "tools").symlink_to(root / ".cache" / "tools")
    return BootstrapCheckout(tmp_path)


def _cut_down(lock: str) -> str:
    entries = re.split(r"\n(?=\S)", lock)
    return "\n".join(entry for entry in entries if re.split("==", entry)[0] in BUILDERS) + "\n"


def _runs(checkout: BootstrapCheckout) -> str:
    command = [checkout.environment / "bin" / "penstock"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.whole
def test_a_fresh_checkout_is_made_ready_and_the_second_time_left_alone(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    bootstrap_checkout(checkout, "run")
    assert _runs(checkout) == "it runs"
    assert "ready" in capsys.readouterr().out
    made = checkout.stamp_file.stat().st_mtime_ns
    bootstrap_checkout(checkout, "run")
    assert (capsys.readouterr().out, checkout.stamp_file.stat().st_mtime_ns) == ("", made)


@pytest.mark.whole
def test_an_environment_for_development_stays_one(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    bootstrap_checkout(checkout, "dev")
    bootstrap_checkout(checkout, "run")
    assert checkout.read_profile() == "dev"
    assert is_environment_current(checkout, "dev")


@pytest.mark.whole
def test_a_lock_that_changed_is_followed_without_making_the_environment_anew(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    bootstrap_checkout(checkout, "run")
    with (checkout.environment / "pyvenv.cfg").open() as first:  # open, so that no later file gets its inode
        made = os.fstat(first.fileno()).st_ino
        entries = re.split(r"\n(?=\S)", checkout.requirements_lock("run").read_text())
        checkout.requirements_lock("run").write_text(
            "\n".join(entry for entry in entries if not entry.startswith("editables")) + "\n"
        )
        assert not is_environment_current(checkout, "run")
        with pytest.raises(BootstrapError, match="editables"):
            bootstrap_checkout(checkout, "run")
        checkout.requirements_lock("run").write_text("\n".join(entries))
        bootstrap_checkout(checkout, "run")
        assert _runs(checkout) == "it runs"
        assert (checkout.environment / "pyvenv.cfg").stat().st_ino != made  # because it was left unfinished
    made = (checkout.environment / "pyvenv.cfg").stat().st_ino
    (checkout.root / "pyproject.toml").write_text(PROJECT.replace('"0"', '"1"'))
    bootstrap_checkout(checkout, "run")
    assert (checkout.environment / "pyvenv.cfg").stat().st_ino == made
    assert is_environment_current(checkout, "run")


@pytest.mark.whole
def test_a_bootstrap_that_is_killed_leaves_nobody_writing_and_is_made_good(
    checkout: BootstrapCheckout,
    kafka_jar_paths: list[Path],
    spark_jar_paths: list[Path],
    eventually: Callable[..., None],
    left: Callable[[], list[psutil.Process]],
) -> None:
    code = (
        "import sys; from pathlib import Path; from penstock.infra.bootstrap.checkout import BootstrapCheckout\n"
        "from penstock.infra.bootstrap.main import bootstrap_checkout\n"
        "bootstrap_checkout(BootstrapCheckout(Path(sys.argv[1])), 'run')"
    )
    with subprocess.Popen([sys.executable, "-c", code, checkout.root], stdout=subprocess.DEVNULL) as making:
        eventually(checkout.unfinished_marker.exists, 60)
        os.kill(making.pid, signal.SIGKILL)
    eventually(lambda: left() == [])
    assert not is_environment_current(checkout, "run")
    bootstrap_checkout(checkout, "run")
    assert _runs(checkout) == "it runs"


@pytest.mark.whole
def test_an_environment_whose_python_is_gone_is_made_anew(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    bootstrap_checkout(checkout, "run")
    checkout.python.unlink()
    checkout.python.symlink_to("/no/such/python")
    bootstrap_checkout(checkout, "run")
    assert _runs(checkout) == "it runs"


@pytest.mark.whole
def test_a_package_with_another_hash_is_refused(
    checkout: BootstrapCheckout, kafka_jar_paths: list[Path], spark_jar_paths: list[Path]
) -> None:
    lock = checkout.requirements_lock("run")
    lock.write_text(re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, lock.read_text()))
    with pytest.raises(BootstrapError, match=r"could not be installed .*[Hh]ash mismatch"):
        bootstrap_checkout(checkout, "run")
    assert not is_environment_current(checkout, "run")


@pytest.mark.whole
def test_without_a_network_the_message_asks_for_one(
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


@dataclass
class Machine:
    """A machine that has only what a test puts onto its PATH."""

    programs: Path
    said: Path

    def has(self, name: str, script: str = "") -> None:
        program = self.programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.said}\n{script}\n')
        program.chmod(0o755)

    def orders(self) -> list[str]:
        return self.said.read_text().splitlines() if self.said.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path / "programs", tmp_path / "said")
    made.programs.mkdir()
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("penstock.infra.java.SYSTEM_JVM_DIRECTORY", tmp_path / "jvm")
    made.has("env", 'shift; exec "$@"')
    return made


JAVA = '/bin/mkdir -p {jvm}/bin; echo "JAVA_VERSION=\\"17.0.1\\"" > {jvm}/release; : > {jvm}/bin/java'


def test_a_machine_without_git_and_java_is_told_so(machine: Machine) -> None:
    assert [each.problem for each in find_missing_prerequisites()] == [
        "git is not on PATH",
        "Java 17 or newer is neither in JAVA_HOME nor on PATH",
    ]


def test_what_is_lacking_is_installed_where_apt_may_be_used(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.has("git")
    machine.has("apt-cache", '[ "$2" = openjdk-21-jre-headless ] && echo Package: it')
    machine.has("apt-get", f'[ "$1" = update ] || {{ {JAVA.format(jvm=tmp_path / "jvm" / "java-17")}; }}')
    install_prerequisites(find_missing_prerequisites(), None)
    assert [order for order in machine.orders() if order.startswith("apt-get")] == [
        "apt-get update -q",
        "apt-get install -q -y --no-install-recommends openjdk-21-jre-headless",
    ]


def test_without_apt_the_message_says_what_to_install(machine: Machine) -> None:
    with pytest.raises(
        BootstrapError, match=r"Java 17 .*\. Install it: apt-get install openjdk-17-jre-headless"
    ):
        install_prerequisites([MissingPrerequisite("Java 17 is missing", ("openjdk-17-jre-headless",))], None)


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_who_is_not_root_is_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.has("apt-get", "exit 100")
    machine.has("sudo", 'exec "$@"')
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return answer

    with pytest.raises(
        BootstrapError, match="failed with 100" if answer else "Install it: apt-get install git"
    ):
        install_prerequisites([MissingPrerequisite("git is not on PATH", ("git",))], ask)
    assert asked == ["git is not on PATH. Install it now with sudo apt-get?"]
    assert any(order.startswith("sudo env") for order in machine.orders()) is answer


def test_a_package_that_does_not_help_is_not_called_a_success(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.has("apt-get")
    machine.has("apt-cache", "echo Package: it")
    with pytest.raises(BootstrapError, match="git is not on PATH, even after git was installed"):
        install_prerequisites([MissingPrerequisite("git is not on PATH", ("git",))], None)


def test_too_little_room_is_said_before_anything_is_made(
    checkout: BootstrapCheckout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.infra.bootstrap.prerequisites.REQUIRED_FREE_BYTES", 10**18)
    with pytest.raises(BootstrapError, match=r"MB free and \d+ MB are needed"):
        bootstrap_checkout(checkout, "run")
    assert not checkout.environment.exists()


@pytest.mark.parametrize(
    ("version", "said"),
    [("3, 9, 2", "apt-get install python3 python3-venv"), ("3, 14, 0", "uv python install 3.13")],
)
def test_a_python_that_cannot_be_used_is_told_what_helps(
    pytestconfig: pytest.Config, tmp_path: Path, version: str, said: str
) -> None:
    script = pytestconfig.rootpath / "infra" / "bootstrap.py"
    code = (
        f"import sys, runpy; sys.version_info = ({version}); sys.argv = ['x']\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert said in told.stderr


def test_by_hand_is_installed_what_the_system_offers(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.has("git")
    machine.has("apt-get")
    machine.has("apt-cache", '[ "$2" = openjdk-21-jre-headless ] && echo Package: it')
    with pytest.raises(BootstrapError, match="Install it: apt-get install openjdk-21-jre-headless"):
        install_prerequisites(find_missing_prerequisites(), None)
    with pytest.raises(JavaMissingError, match="apt-get install openjdk-21-jre-headless"):
        find_java()


def test_an_old_python_is_told_what_is_needed(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    script = pytestconfig.rootpath / "infra" / "bootstrap.py"
    code = (
        "import sys, runpy; sys.version_info = (3, 9, 2); sys.argv = ['x']\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert "Python 3.11, 3.12 or 3.13 is needed" in told.stderr
    assert "is 3.9 and no other is on PATH" in told.stderr
