"""The platform's settings file, changed by an environment and by a person."""

from __future__ import annotations

import tomllib

import pytest

from penstock.infra.environments.errors import SettingsFileError
from penstock.infra.environments.settings_file import apply_settings, remove_settings

LOCAL = {
    "warehouse": "/w",
    "control_url": "sqlite:///c",
    "kafka.bootstrap": "127.0.0.1:1",
    "spark.master": "spark://x:1",
}
PERSON = """# what we agreed on
streams = "sensor_minute"

[kafka]
heap_mb = 512  # enough

[feed]
enabled = false
"""


def test_an_empty_file_gets_the_environments_settings() -> None:
    assert tomllib.loads(apply_settings("", LOCAL, "local")) == {
        "warehouse": "/w",
        "control_url": "sqlite:///c",
        "kafka": {"bootstrap": "127.0.0.1:1"},
        "spark": {"master": "spark://x:1"},
    }


def test_what_a_person_wrote_stays() -> None:
    text = apply_settings(PERSON, LOCAL, "local")
    for line in PERSON.splitlines():
        assert line in text.splitlines()
    read = tomllib.loads(text)
    assert read["kafka"] == {"bootstrap": "127.0.0.1:1", "heap_mb": 512}
    assert (read["streams"], read["feed"]) == ("sensor_minute", {"enabled": False})


def test_another_environment_takes_the_place_of_the_first() -> None:
    text = apply_settings(apply_settings(PERSON, LOCAL, "local"), {"warehouse": "s3://w"}, "aws")
    assert tomllib.loads(text) == tomllib.loads(PERSON) | {"warehouse": "s3://w"}


def test_using_none_brings_the_persons_file_back() -> None:
    assert remove_settings(apply_settings(PERSON, LOCAL, "local")) == PERSON


def test_a_table_that_a_person_added_to_stays() -> None:
    text = apply_settings("", LOCAL, "local")
    added = text.replace('master = "spark://x:1"', 'driver_memory = "2g"\nmaster = "spark://x:1"')
    assert tomllib.loads(remove_settings(added)) == {"spark": {"driver_memory": "2g"}}


def test_a_value_that_a_person_set_is_not_overwritten() -> None:
    with pytest.raises(
        SettingsFileError, match=r"penstock.toml sets kafka\.bootstrap, and the environment local sets it too"
    ):
        apply_settings('[kafka]\nbootstrap = "mine:1"\n', LOCAL, "local")


def test_a_file_that_is_no_toml_is_refused() -> None:
    with pytest.raises(SettingsFileError, match="not TOML"):
        apply_settings("[kafka\n", LOCAL, "local")
