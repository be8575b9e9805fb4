"""Fixtures that every folder of tests may use: the real broker, and the jars it and Spark run from."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings
from tests.catalogs import WriteCatalogFile, use_test_catalog
from tests.distribution import GroupScheduling, scheduling_key
from tests.object_store import TEST_BUCKET, run_object_store
from tests.session_guard import pytest_configure as pytest_configure  # a hook of pytest
from xdist.remote import Producer

from penstock.engine.storage import ObjectStoreConfig, ObjectStorePath, StoragePath
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker

# A Java machine of a test lives for seconds or minutes: compiling quickly is worth more to it than compiling well.
# Java allots a fifth of its room for code to that, and a session of many tests swept it all the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

# How long an example takes says what else the machine does; that a test ends at all is the timeout's business.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=scheduling_key)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """With `--dist loadgroup`, tests that share something dear stay in one worker."""
    return GroupScheduling(config, log) if config.option.dist == "loadgroup" else None


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteCatalogFile]:
    """Writes files of a catalog that is this test's own."""
    with use_test_catalog(tmp_path, monkeypatch) as written:
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
def object_store() -> Iterator[ObjectStoreConfig]:
    """One object store for the session, and keys for it: take a prefix of your own."""
    with pytest.MonkeyPatch.context() as patched, run_object_store() as store:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, "testing")
        patched.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield store


@pytest.fixture
def bucket(object_store: ObjectStoreConfig) -> ObjectStorePath:
    """An empty place in an object store."""
    return ObjectStorePath(f"s3://{TEST_BUCKET}/{uuid4().hex}", object_store)


@pytest.fixture(params=["folder", "object store"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> StoragePath:
    """An empty place for tables, of either kind."""
    place: StoragePath = tmp_path if request.param == "folder" else request.getfixturevalue("bucket")
    return place


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.read_log_tail()))
    return report
