"""Invalid options of bounded runs."""

from datetime import date
from pathlib import Path

import pytest

from penstock.platform.errors import BatchSizeError
from penstock.platform.services.bounded_runs import build_run_config, run_over_stored_records
from penstock.platform.services.stream_catalog import load_plan
from penstock.platform.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    return load_settings().settings


@pytest.mark.parametrize("batch_size", [0, -5])
def test_a_batch_size_below_one_is_refused(settings: Settings, tmp_path: Path, batch_size: int) -> None:
    with pytest.raises(BatchSizeError, match=f"records_per_batch is {batch_size}; "):
        run_over_stored_records(
            settings, "sensor_minute", None, None, batch_size, lambda _: None, date(2026, 1, 31)
        )
    assert (
        build_run_config(settings, load_plan("sensor_minute"), tmp_path, tmp_path, 1).max_records_per_batch
        == 1
    )
    assert (
        build_run_config(settings, load_plan("sensor_minute"), tmp_path, tmp_path, None).max_records_per_batch
        is None
    )
