"""Dagster's check that every definition file is valid, after it loaded the definitions."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, SensorResult, SkipReason, build_sensor_context
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile, use_test_catalog

from penstock.platform.definitions.definition_files import CHECK_NAME, FILES_KEY, evaluate_files
from penstock.platform.services.alerts import Alert
from penstock.platform.services.definition_problems import find_definition_problems

Evaluate = Callable[[], SensorResult | SkipReason]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteCatalogFile]:
    monkeypatch.chdir(tmp_path)
    with use_test_catalog(tmp_path, monkeypatch) as write_file:
        write_file("orders.py", PIPELINE_TEMPLATE.format(name="orders"))
        yield write_file


def test_a_file_that_becomes_invalid_after_the_load_fails_the_check_until_it_is_valid(
    write: WriteCatalogFile,
) -> None:
    alerts: list[Alert] = []
    with DagsterInstance.ephemeral() as instance:
        context = build_sensor_context(instance)

        def evaluate() -> SensorResult | SkipReason:
            result = evaluate_files(context, lambda: list(find_definition_problems()), alerts.append)
            if isinstance(result, SensorResult):
                context.update_cursor(result.cursor)
            return result

        assert read_result(evaluate()) == (True, "all files are valid", None)
        assert isinstance(evaluate(), SkipReason)
        broken = write("broken.py", PIPELINE_TEMPLATE.format(name="broken").replace("sensors", "sensor"))
        message = "catalog/broken.py:4: read: there is no contract for 'sensor'. Did you mean 'sensors'?"
        passed, state, problems = read_result(evaluate())
        assert (passed, state) == (False, "1 invalid")
        assert problems is not None
        assert problems.startswith(f"- {message}")
        broken.unlink()
        assert read_result(evaluate()) == (True, "all files are valid", None)
    assert [alert.state for alert in alerts] == ["invalid", "valid"]
    assert message in alerts[0].text


def read_result(result: SensorResult | SkipReason) -> tuple[bool, object, str | None]:
    assert isinstance(result, SensorResult)
    (event,) = result.asset_events
    assert (event.asset_key, event.check_name) == (FILES_KEY, CHECK_NAME)  # type: ignore[union-attr]
    metadata = {name: value.value for name, value in event.metadata.items()}
    return event.passed, metadata["state"], metadata.get("problems")  # type: ignore[union-attr]
