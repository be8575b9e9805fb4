"""Fixtures that every folder of tests may use: the real broker, and the jars it and Spark run from."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings
from tests.catalogs import Write, catalog_in
from tests.distribution import ByGroup, place_of
from tests.object_store import BUCKET, running_store
from xdist.remote import Producer

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines.store import Address, Place, Store

# A Java machine of a test lives for seconds or minutes: compiling quickly is worth more to it than compiling well.
# Java allots a fifth of its room for code to that, and a session of many tests swept it all the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

# How long an example takes says what else the machine does; that a test ends at all is the timeout's business.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=place_of)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup | None:
    """With `--dist loadgroup`, tests that share something dear stay in one worker."""
    return ByGroup(config, log) if config.option.dist == "loadgroup" else None


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files of a catalog that is this test's own."""
    with catalog_in(tmp_path, monkeypatch) as written:
        yield written


@pytest.fixture(scope="session")
def jar_directory(pytestconfig: pytest.Config) -> Path:
    """The jar folder of this checkout: filled once, by whoever needs it first."""
    return pytestconfig.rootpath / ".penstock" / "jars"


@pytest.fixture(scope="session")
def spark_jar_paths(jar_directory: Path) -> list[Path]:
    return ensure_jars(jar_directory, ["spark", "store"])


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


@pytest.fixture(scope="session")
def object_store() -> Iterator[Store]:
    """One object store for the session, and keys for it: take a prefix of your own."""
    with pytest.MonkeyPatch.context() as patched, running_store() as store:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, "testing")
        patched.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield store


@pytest.fixture
def bucket(object_store: Store) -> Address:
    """An empty place in an object store."""
    return Address(f"s3://{BUCKET}/{uuid4().hex}", object_store)


@pytest.fixture(params=["folder", "object store"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for tables, of either kind."""
    place: Place = tmp_path if request.param == "folder" else request.getfixturevalue("bucket")
    return place


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.last_lines()))
    return report
