"""What the stack is made of, decided from settings."""

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


def programs(settings: Settings) -> dict[str, Program]:
    return {program.name: program for program in stack_programs(settings, [Path("a.jar")])}


def changed(before: Settings, after: Settings) -> set[str]:
    """Which programs a change of settings restarts."""
    old, new = programs(before), programs(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def set_to(settings: Settings, section: str, **values: object) -> Settings:
    part = getattr(settings, section).model_copy(update=values)
    return settings.model_copy(update={section: part})


def test_the_stack_stops_from_the_feed_to_the_broker(settings: Settings) -> None:
    found = programs(settings)
    ordered = sorted(found.values(), key=lambda program: -program.start_order)
    assert [program.name for program in ordered] == ["feed", "host", "webserver", "daemon", "code", "broker"]
    tiers = {program.start_order: 0.0 for program in ordered}
    for program in ordered:
        tiers[program.start_order] = max(tiers[program.start_order], program.stop_seconds)
    assert sum(tiers.values()) <= 40


def test_what_reads_or_writes_topics_waits_for_the_broker(settings: Settings) -> None:
    found = programs(settings)
    assert found["host"].waits_for == found["feed"].waits_for == (found["broker"].answers_at,)


def test_every_program_is_ready_by_what_it_does_and_not_by_having_lived_for_a_while(
    settings: Settings,
) -> None:
    by_time = [p.name for p in programs(settings).values() if p.answers_at is None and not p.reports_ready]
    assert by_time == []
    # Their ports answer, or could, before they can do their work.
    assert {name for name, program in programs(settings).items() if program.reports_ready} == {
        *("feed", "host", "daemon")
    }


def test_a_changed_setting_restarts_only_what_it_is_for(settings: Settings) -> None:
    assert changed(settings, settings) == set()
    assert changed(settings, set_to(settings, "feed", rate=7)) == {"feed"}
    assert changed(settings, set_to(settings, "spark", driver_memory="2g")) == {"host", "code"}
    assert changed(settings, set_to(settings, "dagster", port=3999)) == {"code", "webserver", "daemon"}
    assert changed(settings, set_to(settings, "feed", enabled=False)) == {"feed"}


def test_with_another_broker_none_is_started(settings: Settings) -> None:
    found = programs(set_to(settings, "kafka", bootstrap="kafka.example:9092,other.example:9092"))
    assert "broker" not in found
    assert found["host"].waits_for == (("kafka.example", 9092),)
    assert found["host"].environment["PENSTOCK_KAFKA__BOOTSTRAP"] == "kafka.example:9092,other.example:9092"


def test_a_program_reads_back_the_settings_it_was_given(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = set_to(settings, "kafka", port=29092).model_copy(update={"streams": ("a", "b")})
    for name, value in programs(chosen)["host"].environment.items():
        monkeypatch.setenv(name, value)
    assert load_settings().settings == chosen


def test_dagsters_home_is_written_once_and_again_when_settings_change(settings: Settings) -> None:
    write_dagster_home(settings)
    files = {path.name: path.stat().st_mtime_ns for path in dagster_home(settings).iterdir()}
    assert set(files) == {"dagster.yaml", "workspace.yaml"}
    write_dagster_home(settings)
    assert files == {path.name: path.stat().st_mtime_ns for path in dagster_home(settings).iterdir()}
    write_dagster_home(set_to(settings, "dagster", code_port=4999))
    workspace = yaml.safe_load((dagster_home(settings) / "workspace.yaml").read_text("utf-8"))
    (location,) = workspace["load_from"]
    assert location["grpc_server"] == {"host": "127.0.0.1", "port": 4999, "location_name": "penstock"}


def test_dagster_keeps_no_password_in_its_files(settings: Settings) -> None:
    secret = set_to(settings, "dagster", storage_url="postgresql://me:secret@127.0.0.1/dagster")
    assert "secret" not in str(dagster_config(secret))
    environment = programs(secret)["webserver"].environment
    assert environment["PENSTOCK_DAGSTER__STORAGE_URL"] == "postgresql://me:secret@127.0.0.1/dagster"
