"""Fixtures for all tests: a Spark session, a real broker, an object store, and the jars."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
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
from penstock.infra.java import find_java
from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A JVM of a test lives for seconds or minutes, so that a fast start counts for more than fast code. Without the
# verification of classes, a cold Spark session and its first queries take 13.8 s of processor time, else 16.1 s.
# The default code cache of the first compiler tier is too small for a session of many tests.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

# The time of an example depends on the load of the machine; timeouts limit whole tests.
settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=scheduling_key)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """With `--dist loadgroup`, tests that share something expensive run in one worker."""
    return GroupScheduling(config, log) if config.option.dist == "loadgroup" else None


@pytest.fixture(autouse=True)
def _same_umask() -> Iterator[None]:
    """Restore who may read new files: a command closes them for its process, which is that of other tests."""
    umask = os.umask(0o022)
    os.umask(umask)
    yield
    os.umask(umask)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteCatalogFile]:
    """Write files of a catalog for this test."""
    with use_test_catalog(tmp_path, monkeypatch) as write_file:
        yield write_file


@pytest.fixture(scope="session")
def jar_directory(pytestconfig: pytest.Config) -> Path:
    """The jar folder of this checkout, filled at the first use."""
    return pytestconfig.rootpath / ".penstock" / "jars"


@pytest.fixture(scope="session")
def spark_jar_paths(jar_directory: Path) -> list[Path]:
    return ensure_jars(jar_directory, ["spark", "store"])


@pytest.fixture(scope="session")
def kafka_jar_paths(jar_directory: Path) -> list[Path]:
    return ensure_jars(jar_directory, ["kafka"])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_jar_paths: list[Path]) -> "Iterator[SparkSession]":
    """The Spark session of this process."""
    from penstock.engine.spark.session import SparkSessionConfig, open_spark_session

    config = SparkSessionConfig(
        jars=spark_jar_paths,
        directory=tmp_path_factory.mktemp("spark"),
        driver_memory="2g",  # with 1g, garbage collection between tests takes a tenth of the time
        java_home=find_java().home,
    )
    session = open_spark_session(config)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    """A broker for the session: leave it running, and use your own topic names."""
    with LocalBroker.in_directory(tmp_path_factory.mktemp("broker"), kafka_jar_paths) as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    """A broker for one test, which may kill, pause and restart it."""
    with LocalBroker.in_directory(tmp_path / "broker", kafka_jar_paths) as running:
        yield running


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStoreConfig]:
    """An object store for the session, with its keys: use your own prefix."""
    with pytest.MonkeyPatch.context() as patched, run_object_store() as store:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, "testing")
        patched.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield store


@pytest.fixture
def bucket(object_store: ObjectStoreConfig) -> ObjectStorePath:
    """An empty prefix in an object store."""
    return ObjectStorePath(f"s3://{TEST_BUCKET}/{uuid4().hex}", object_store)


@pytest.fixture(params=["folder", "object store"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> StoragePath:
    """An empty folder or object store prefix for tables."""
    root: StoragePath = tmp_path if request.param == "folder" else request.getfixturevalue("bucket")
    return root


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.read_log_tail()))
    return report
