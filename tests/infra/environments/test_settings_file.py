"""Settings of an environment in the user's settings file."""

from __future__ import annotations

import tomllib

import pytest

from penstock.infra.environments.errors import SettingsFileError
from penstock.infra.environments.settings_file import apply_settings, remove_settings

LOCAL_SETTINGS = {
    "warehouse": "/w",
    "control_url": "sqlite:///c",
    "kafka.bootstrap": "127.0.0.1:1",
    "spark.master": "spark://x:1",
}
USER_SETTINGS = """# what we agreed on
streams = "sensor_minute"

[kafka]
heap_mb = 512  # enough

[feed]
enabled = false
"""


def test_an_empty_file_gets_the_environments_settings() -> None:
    assert tomllib.loads(apply_settings("", LOCAL_SETTINGS, "local")) == {
        "warehouse": "/w",
        "control_url": "sqlite:///c",
        "kafka": {"bootstrap": "127.0.0.1:1"},
        "spark": {"master": "spark://x:1"},
    }


def test_lines_of_the_user_are_preserved() -> None:
    text = apply_settings(USER_SETTINGS, LOCAL_SETTINGS, "local")
    for line in USER_SETTINGS.splitlines():
        assert line in text.splitlines()
    settings = tomllib.loads(text)
    assert settings["kafka"] == {"bootstrap": "127.0.0.1:1", "heap_mb": 512}
    assert (settings["streams"], settings["feed"]) == ("sensor_minute", {"enabled": False})


def test_another_environment_replaces_the_first() -> None:
    text = apply_settings(
        apply_settings(USER_SETTINGS, LOCAL_SETTINGS, "local"), {"warehouse": "s3://w"}, "aws"
    )
    assert tomllib.loads(text) == tomllib.loads(USER_SETTINGS) | {"warehouse": "s3://w"}


def test_removing_the_environment_restores_the_file_of_the_user() -> None:
    assert remove_settings(apply_settings(USER_SETTINGS, LOCAL_SETTINGS, "local")) == USER_SETTINGS


def test_a_table_with_keys_of_the_user_is_preserved() -> None:
    text = apply_settings("", LOCAL_SETTINGS, "local")
    added = text.replace('master = "spark://x:1"', 'driver_memory = "2g"\nmaster = "spark://x:1"')
    assert tomllib.loads(remove_settings(added)) == {"spark": {"driver_memory": "2g"}}


def test_a_value_of_the_user_is_not_overwritten() -> None:
    with pytest.raises(
        SettingsFileError, match=r"penstock.toml sets kafka\.bootstrap, and the environment local sets it too"
    ):
        apply_settings('[kafka]\nbootstrap = "mine:1"\n', LOCAL_SETTINGS, "local")


def test_invalid_toml_is_refused() -> None:
    with pytest.raises(SettingsFileError, match="not TOML"):
        apply_settings("[kafka\n", LOCAL_SETTINGS, "local")
