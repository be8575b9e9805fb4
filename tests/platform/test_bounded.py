"""What a run over stored records is refused, before anything starts."""

from datetime import date
from pathlib import Path

import pytest

from penstock.platform.errors import BatchSizeError
from penstock.platform.services.bounded_runs import build_run_config, run_over_stored_records
from penstock.platform.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    return load_settings().settings


@pytest.mark.parametrize("most", [0, -5])
def test_batches_of_no_record_are_refused(settings: Settings, tmp_path: Path, most: int) -> None:
    with pytest.raises(BatchSizeError, match=f"records_per_batch is {most}; "):
        run_over_stored_records(
            settings, "sensor_minute", None, None, most, lambda _: None, date(2026, 1, 31)
        )
    assert build_run_config(settings, tmp_path, tmp_path, 1).max_records_per_batch == 1
    assert build_run_config(settings, tmp_path, tmp_path, None).max_records_per_batch is None
