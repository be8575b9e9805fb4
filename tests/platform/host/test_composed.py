"""What a host is made of, from settings."""

import stat
from pathlib import Path

import pytest

from penstock.platform.errors import SettingsError
from penstock.platform.host.compose import private_settings, warehouse_folder
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
    path = private_settings(settings.model_copy(update={"spark": spark}))
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text("utf-8").splitlines() == [
        "spark.authenticate true",
        "spark.authenticate.secret canary",
        "spark.network.crypto.enabled true",
    ]
    assert private_settings(settings) is None
    assert not path.exists(), "a secret is left behind"


def test_a_master_without_a_secret_needs_no_file(settings: Settings) -> None:
    assert private_settings(settings) is None
    assert not settings.home.exists()


def test_an_address_is_no_place_for_a_stream_to_write(settings: Settings) -> None:
    assert warehouse_folder(settings) == settings.home / "warehouse"
    with pytest.raises(
        SettingsError, match="the warehouse is s3://tables: set PENSTOCK_WAREHOUSE to a folder"
    ):
        warehouse_folder(settings.model_copy(update={"warehouse": "s3://tables"}))
