"""What a host is made of, from settings."""

import stat
from pathlib import Path

import pytest

from penstock.engine.spark.session import SparkSessionConfig
from penstock.engine.spark.session import build_session_settings as told_to_spark
from penstock.engine.storage import ObjectStoreConfig, ObjectStorePath
from penstock.platform.errors import SettingsError
from penstock.platform.host.composition import spark_config, write_private_properties
from penstock.platform.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return load_settings().settings


def test_the_secret_of_a_master_is_told_by_a_file_of_its_owner_alone(
    settings: Settings, tmp_path: Path
) -> None:
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
    assert not path.exists(), "a secret is left behind"


def test_a_master_without_a_secret_needs_no_file(settings: Settings) -> None:
    assert write_private_properties(settings) is None
    assert not settings.home.exists()


def test_tables_are_in_a_folder_or_in_an_object_store_that_spark_can_read_then(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.warehouse_path == settings.home / "warehouse"
    assert "hadoop-aws" not in jars_of(settings)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3a://tables/here/")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", "http://store:9000")
    there = load_settings().settings
    assert there.warehouse_path / "latest/minute" == ObjectStorePath(
        "s3://tables/here/latest/minute", ObjectStoreConfig("http://store:9000")
    )
    assert "hadoop-aws" in jars_of(there)
    assert spark_config(there).extra_settings["spark.hadoop.fs.s3a.endpoint"] == "http://store:9000"


@pytest.mark.parametrize("address", ["gs://tables/here", "s3://", "hdfs://name/here"])
def test_any_other_address_is_refused_when_settings_are_read(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", address)
    with pytest.raises(SettingsError, match=f"{address}: tables can be stored only in a folder or in s3://"):
        load_settings()


def jars_of(settings: Settings) -> str:
    return " ".join(jar.name for jar in spark_config(settings).jars)


def test_a_session_takes_no_more_of_a_cluster_than_it_is_told_and_all_of_it_where_it_is_told_nothing(
    tmp_path: Path,
) -> None:
    share = {"spark.cores.max": "2", "spark.executor.memory": "512m"}
    told = told_to_spark(SparkSessionConfig((), tmp_path, max_cores=2, executor_memory="512m"))
    assert share.items() <= told.items()
    assert not share.keys() & told_to_spark(SparkSessionConfig((), tmp_path)).keys()
