"""A setting of the host is added in two files: its declaration, and the place that uses it."""

import inspect
from pathlib import Path

import pytest

import penstock.engine
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.host.host_process import HostConfig
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.host.stream_supervisor import HostContext
from penstock.engine.host_settings import HostSettings
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.stream_config import StreamConfig
from penstock.platform.host.composition import host_config
from penstock.platform.services.bounded_runs import build_run_config
from penstock.platform.services.stream_catalog import load_plan
from penstock.platform.settings import Settings, load_settings

WAY_DOWN = (
    HostConfig,
    StreamHost,
    HostContext,
    StreamConfig,
    LiveStream,
    BoundedRunConfig,
    EngineOptions,
    BatchEngine,
)
"""The classes through which the settings pass from the host process to a batch."""


def test_the_engine_gets_the_very_group_of_settings_that_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PENSTOCK_HOST__POISON_LIMIT", "7")
    settings = load_settings().settings
    assert Settings.model_fields["host"].annotation is HostSettings
    assert settings.host.poison_limit == 7
    assert host_config(settings, 0).stream_config.settings is settings.host
    assert (
        build_run_config(settings, load_plan("sensor_minute"), tmp_path, tmp_path, None).settings
        is settings.host
    )


@pytest.mark.parametrize("passed_through", WAY_DOWN)
def test_no_setting_is_copied_into_a_field_or_parameter_on_its_way(passed_through: type) -> None:
    names = {*inspect.signature(passed_through).parameters}
    copies = {copy for name in HostSettings.model_fields for copy in (name, f"{name}_ms", f"{name}_bytes")}
    assert not names & copies


def test_every_setting_is_used() -> None:
    engine, platform = Path(penstock.engine.__path__[0]), Path(inspect.getfile(Settings)).parents[1]
    sources = [path.read_text("utf-8") for folder in (engine, platform) for path in folder.rglob("*.py")]
    unused = [
        name for name in HostSettings.model_fields if not any(f".{name}" in source for source in sources)
    ]
    assert not unused
