"""Passwords inside of database URLs reach programs by a private file only."""

import stat
from pathlib import Path

import pytest

from penstock.platform.settings import load_settings
from penstock.platform.stack.database_passwords import (
    database_password_variables,
    hide_database_passwords,
    write_database_passwords,
)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "own"))
    return tmp_path / "home"


def test_programs_find_the_passwords_of_urls_in_a_private_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text("other:5432:db:me:canary-own\n")
    monkeypatch.setenv("PENSTOCK_CONTROL_URL", "postgresql://me:canary%3A5e4c@here:5433/control")
    monkeypatch.setenv(
        "PENSTOCK_DAGSTER__STORAGE_URL", "postgresql://here/dagster?password=canary-c0de&sslmode=require"
    )
    settings = load_settings().settings
    write_database_passwords(settings)
    file = Path(database_password_variables(settings)["PGPASSFILE"])
    assert file.is_relative_to(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().splitlines() == [
        r"here:5433:control:me:canary\:5e4c",
        "here:*:dagster:*:canary-c0de",
        "other:5432:db:me:canary-own",
    ]
    hidden = hide_database_passwords(settings)
    assert hidden.control_url == "postgresql://me@here:5433/control"
    assert hidden.dagster.storage_url == "postgresql://here/dagster?sslmode=require"


def test_urls_without_passwords_stay_as_they_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DAGSTER__STORAGE_URL", "postgresql://me@here/dagster")
    settings = load_settings().settings
    write_database_passwords(settings)
    assert database_password_variables(settings) == {}
    assert hide_database_passwords(settings) == settings
    assert not home.exists()
