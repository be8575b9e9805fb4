"""The programs of the stack, and the home of Dagster."""

from pathlib import Path

import pytest
import yaml

from penstock.infra.processes import Program
from penstock.platform.settings import Settings, load_settings
from penstock.platform.stack.dagster_home import dagster_config, dagster_home, write_dagster_home
from penstock.platform.stack.programs import stack_programs


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return load_settings().settings


def build_programs(settings: Settings) -> dict[str, Program]:
    return {program.name: program for program in stack_programs(settings, [Path("a.jar")])}


def list_restarted(before: Settings, after: Settings) -> set[str]:
    """List the programs that a change of settings restarts."""
    old, new = build_programs(before), build_programs(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def change_setting(settings: Settings, section: str, **values: object) -> Settings:
    section_settings = getattr(settings, section).model_copy(update=values)
    return settings.model_copy(update={section: section_settings})


def test_the_stack_stops_from_the_feed_to_the_broker(settings: Settings) -> None:
    programs = build_programs(settings)
    ordered = sorted(programs.values(), key=lambda program: -program.start_order)
    assert [program.name for program in ordered] == [
        *("feed", "host", "console", "webserver", "daemon", "code", "broker")
    ]
    tiers = {program.start_order: 0.0 for program in ordered}
    for program in ordered:
        tiers[program.start_order] = max(tiers[program.start_order], program.stop_seconds)
    assert sum(tiers.values()) <= 40


def test_programs_that_use_topics_wait_for_the_broker(settings: Settings) -> None:
    programs = build_programs(settings)
    assert programs["host"].waits_for == programs["feed"].waits_for == (programs["broker"].answers_at,)


def test_every_program_reports_readiness_or_answers_at_an_address(
    settings: Settings,
) -> None:
    by_time = [
        p.name for p in build_programs(settings).values() if p.answers_at is None and not p.reports_ready
    ]
    assert by_time == []
    # Their ports answer before they are ready.
    assert {name for name, program in build_programs(settings).items() if program.reports_ready} == {
        *("feed", "host", "daemon")
    }


def test_a_changed_setting_restarts_only_its_programs(settings: Settings) -> None:
    assert list_restarted(settings, settings) == set()
    assert list_restarted(settings, change_setting(settings, "feed", rate=7)) == {"feed"}
    assert list_restarted(settings, change_setting(settings, "spark", driver_memory="2g")) == {
        "console",
        "host",
        "code",
    }
    assert list_restarted(settings, change_setting(settings, "dagster", port=3999)) == {
        "console",
        "code",
        "webserver",
        "daemon",
    }
    assert list_restarted(settings, change_setting(settings, "feed", enabled=False)) == {"feed"}


def test_an_external_broker_replaces_the_local_one(settings: Settings) -> None:
    programs = build_programs(
        change_setting(settings, "kafka", bootstrap="kafka.example:9092,other.example:9092")
    )
    assert "broker" not in programs
    assert programs["host"].waits_for == (("kafka.example", 9092),)
    assert (
        programs["host"].environment["PENSTOCK_KAFKA__BOOTSTRAP"] == "kafka.example:9092,other.example:9092"
    )


def test_a_program_loads_the_settings_of_its_variables(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_settings = change_setting(settings, "kafka", port=29092).model_copy(
        update={"streams": ("a", "b")}
    )
    for name, value in build_programs(changed_settings)["host"].environment.items():
        monkeypatch.setenv(name, value)
    assert load_settings().settings == changed_settings


def test_the_dagster_home_is_written_when_settings_change(settings: Settings) -> None:
    write_dagster_home(settings)
    files = {path.name: path.stat().st_mtime_ns for path in dagster_home(settings).iterdir()}
    assert set(files) == {"dagster.yaml", "workspace.yaml"}
    write_dagster_home(settings)
    assert files == {path.name: path.stat().st_mtime_ns for path in dagster_home(settings).iterdir()}
    write_dagster_home(change_setting(settings, "dagster", code_port=4999))
    workspace = yaml.safe_load((dagster_home(settings) / "workspace.yaml").read_text("utf-8"))
    (location,) = workspace["load_from"]
    assert location["grpc_server"] == {"host": "127.0.0.1", "port": 4999, "location_name": "penstock"}


def test_the_dagster_home_contains_no_password(settings: Settings) -> None:
    secret = change_setting(settings, "dagster", storage_url="postgresql://me:secret@127.0.0.1/dagster")
    assert "secret" not in str(dagster_config(secret))
    environment = build_programs(secret)["webserver"].environment
    assert environment["PENSTOCK_DAGSTER__STORAGE_URL"] == "postgresql://me@127.0.0.1/dagster"
    assert environment["PGPASSFILE"] == str(settings.home / "run" / "database-passwords")
