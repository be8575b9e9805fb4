"""The examples in Python of `querying.md`, and `penstock.open` from the built package."""

import doctest
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

ROOT = Path(__file__).parents[3]
START, END = datetime(2026, 1, 31, 12, 0, tzinfo=UTC), datetime(2026, 1, 31, 12, 1, tzinfo=UTC)
WINDOW = {"window_start": START, "window_end": END}


def write_batch(path: Path, rows: list[dict[str, object]], batch_id: int, *, replace: bool) -> None:
    """Write a table as a stream does: each commit has its batch."""
    content = pa.Table.from_pylist([{**row, **WINDOW, "batch_id": batch_id} for row in rows])
    properties = CommitProperties(app_transactions=[Transaction("sensor_minute", batch_id)])
    mode = "overwrite" if replace else "append"
    write_deltalake(path, content, mode=mode, commit_properties=properties)  # type: ignore[call-overload]


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current rows and the log of two batches: the second one corrects a window, and adds one."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    latest, log = tmp_path / "warehouse/latest/sensor_minute", tmp_path / "warehouse/panes/sensor_minute"
    first = {"device": "a", "temperature": 20.0}
    corrected, other = {"device": "a", "temperature": 20.5}, {"device": "b", "temperature": 23.0}
    write_batch(latest, [first], 1, replace=True)
    write_batch(latest, [corrected, other], 2, replace=True)
    write_batch(log, [{**first, "kind": "insert"}], 1, replace=False)
    changed = [{**first, "kind": "retract"}, {**corrected, "kind": "insert"}, {**other, "kind": "insert"}]
    write_batch(log, changed, 2, replace=False)
    return tmp_path / "warehouse"


def test_the_examples_of_the_page_are_right(warehouse: Path) -> None:
    failures, attempts = doctest.testfile(str(ROOT / "pipelines/docs/querying.md"), module_relative=False)
    assert (failures, attempts > 10) == (0, True)


def test_the_built_package_opens_tables(warehouse: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    program = (
        "import penstock; print(penstock.__file__);"
        f"print(penstock.open('sensor_minute', warehouse='{warehouse}').columns[0])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert printed == [str(tmp_path / "unpacked/penstock/__init__.py"), "device"]


def test_one_root_only_has_the_file_of_the_package() -> None:
    assert [str(file.relative_to(ROOT)) for file in ROOT.glob("*/penstock/__init__.py")] == [
        "platform/penstock/__init__.py"
    ]
