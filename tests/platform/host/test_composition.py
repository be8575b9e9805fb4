"""The configuration of a host from settings."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.spark.session import SparkSessionConfig, build_session_settings
from penstock.engine.storage import ObjectStoreConfig, ObjectStorePath
from penstock.platform.errors import SettingsError
from penstock.platform.host.composition import _load_host_plan, spark_config, write_private_properties
from penstock.platform.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return load_settings().settings


def test_the_secret_of_a_master_is_in_a_private_file(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary\n", "utf-8")
    spark = settings.spark.model_copy(update={"secret": str(tmp_path / "secret")})
    path = write_private_properties(settings.model_copy(update={"spark": spark}))
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text("utf-8").splitlines() == [
        "spark.authenticate true",
        "spark.authenticate.secret canary",
        "spark.network.crypto.enabled true",
    ]
    assert write_private_properties(settings) is None
    assert not path.exists(), "the file with the secret remains"


def test_a_master_without_a_secret_needs_no_file(settings: Settings) -> None:
    assert write_private_properties(settings) is None
    assert not settings.home.exists()


def test_an_object_store_warehouse_adds_its_jars(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.warehouse_path == settings.home / "warehouse"
    assert "hadoop-aws" not in list_jar_names(settings)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3a://tables/here/")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", "http://store:9000")
    object_store_settings = load_settings().settings
    assert object_store_settings.warehouse_path / "latest/minute" == ObjectStorePath(
        "s3://tables/here/latest/minute", ObjectStoreConfig("http://store:9000")
    )
    assert "hadoop-aws" in list_jar_names(object_store_settings)
    assert (
        spark_config(object_store_settings).extra_settings["spark.hadoop.fs.s3a.endpoint"]
        == "http://store:9000"
    )


@pytest.mark.parametrize("address", ["gs://tables/here", "s3://", "hdfs://name/here"])
def test_an_unsupported_warehouse_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", address)
    with pytest.raises(SettingsError, match=f"{address}: tables can be stored only in a folder or in s3://"):
        load_settings()


def list_jar_names(settings: Settings) -> str:
    return " ".join(jar.name for jar in spark_config(settings).jars)


def test_a_session_has_the_configured_resource_limits(
    tmp_path: Path,
) -> None:
    limits = {"spark.cores.max": "2", "spark.executor.memory": "512m"}
    session_settings = build_session_settings(
        SparkSessionConfig((), tmp_path, max_cores=2, executor_memory="512m")
    )
    assert limits.items() <= session_settings.items()
    assert not limits.keys() & build_session_settings(SparkSessionConfig((), tmp_path)).keys()


def test_pipelines_that_load_at_the_same_time_do_not_remove_each_others_modules(
    write: WriteCatalogFile,
) -> None:
    names = ("one", "two", "three")
    for name in names:
        write(f"{name}.py", f"import time\ntime.sleep(0.1)\n{dedent(PIPELINE_TEMPLATE.format(name=name))}")
    with ThreadPoolExecutor(len(names)) as threads:
        assert [plan.name for plan in threads.map(_load_host_plan, names)] == list(names)
