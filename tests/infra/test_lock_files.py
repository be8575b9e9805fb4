"""The lock files of the checkout, and its folder `platform`."""

import re
from pathlib import Path

import pytest

from penstock.infra.jars import JAR_SETS, read_jar_lock

LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "infra/bootstrap.lock",
    "infra/build.lock",
    "infra/penstock/infra/jars.lock",
)


def test_the_folder_platform_does_not_hide_the_standard_module(pytestconfig: pytest.Config) -> None:
    import platform

    assert not (pytestconfig.rootpath / "platform" / "__init__.py").exists()
    assert platform.python_version()


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_host(pytestconfig: pytest.Config, name: str) -> None:
    assert not re.search(r"://|--index|--find-links", (pytestconfig.rootpath / name).read_text())


@pytest.mark.parametrize("name", LOCKS[:4])
def test_every_package_of_a_lock_has_its_hashes(pytestconfig: pytest.Config, name: str) -> None:
    entries = re.split(r"\n(?=\S)", (pytestconfig.rootpath / name).read_text())
    packages = [entry for entry in entries if not entry.startswith("#")]
    assert packages
    assert [entry.split()[0] for entry in packages if "--hash=sha256:" not in entry] == []


def test_both_package_locks_agree_on_every_version(pytestconfig: pytest.Config) -> None:
    run, dev = (_read_versions(pytestconfig.rootpath / name) for name in LOCKS[:2])
    assert {name: dev.get(name) for name in run} == run


def test_source_packages_are_built_with_tools_of_the_main_lock(pytestconfig: pytest.Config) -> None:
    main, build = (_read_versions(pytestconfig.rootpath / name) for name in ("requirements.lock", LOCKS[3]))
    assert {"setuptools", "wheel", "hatchling"} <= set(build)
    assert {name: main.get(name) for name in build} == build


def test_the_jar_lock_has_every_set_and_unique_file_names() -> None:
    jars = read_jar_lock()
    assert {jar.jar_set for jar in jars} == set(JAR_SETS)
    assert len({jar.file_name for jar in jars}) == len(jars)


def _read_versions(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.\[\]-]+)==(\S+)", lock.read_text(), re.MULTILINE))
