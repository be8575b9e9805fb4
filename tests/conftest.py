"""Fixtures that every folder of tests may use: the real broker, and the jars it and Spark run from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker

SHARED = {"spark": "spark"}
"""Fixtures that take long to start and are shared by tests of several files, with the group of who uses them."""

LONGEST_FIRST = ("platform", "aws", "spark", "local", "compose", "secured", "images")
"""Groups whose tests run one after the other for minutes: begun last, they would be waited for alone. All that
starts the whole platform is one of them, for two platforms at once are more than two cores."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have tests that share something dear run in one worker (`--dist loadgroup`), the longest groups first."""
    for item in items:
        shared = [SHARED[name] for name in getattr(item, "fixturenames", ()) if name in SHARED]
        if shared:
            item.add_marker(pytest.mark.xdist_group(shared[0]))
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, bool]:
    marker = item.get_closest_marker("xdist_group")
    group = marker.args[0] if marker else ""
    place = LONGEST_FIRST.index(group) if group in LONGEST_FIRST else len(LONGEST_FIRST)
    # A platform that goes on running while others look at it comes last in its group: it takes from all.
    return place, "running" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def jar_directory(pytestconfig: pytest.Config) -> Path:
    """The jar folder of this checkout: filled once, by whoever needs it first."""
    return pytestconfig.rootpath / ".penstock" / "jars"


@pytest.fixture(scope="session")
def spark_jar_paths(jar_directory: Path) -> list[Path]:
    return ensure_jars(jar_directory, ["spark"])


@pytest.fixture(scope="session")
def kafka_jar_paths(jar_directory: Path) -> list[Path]:
    return ensure_jars(jar_directory, ["kafka"])


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    """One broker for the session: leave it running, and take topics of your own names."""
    with LocalBroker.in_directory(tmp_path_factory.mktemp("broker"), kafka_jar_paths) as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    """A broker for one test, which may kill, pause and restart it."""
    with LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.last_lines()))
    return report
