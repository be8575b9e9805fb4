"""The catalog of streams, and changes of their files."""

import logging
import os

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.errors import PipelineError
from penstock.ingestion.contracts import list_contract_names
from penstock.pipelines import catalog
from penstock.platform.services.definition_files import definition_fingerprint, find_changed_file
from penstock.platform.services.stream_catalog import (
    find_stream_error,
    list_stream_names,
    load_valid_plans,
    table_show_command,
)


def test_each_pipeline_and_each_archived_topic_has_a_stream() -> None:
    expected = (*catalog.pipeline_names(), *(f"archive-{topic}" for topic in list_contract_names()))
    assert list_stream_names() == expected
    for name in list_stream_names():
        assert find_stream_error(name) is None


@pytest.mark.parametrize("name", ["nonsense", "archive-nonsense", "archive-"])
def test_an_unknown_stream_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match=name):
        find_stream_error(name)


def test_each_stream_is_shown_by_a_command() -> None:
    assert table_show_command("sensor_minute") == "penstock table show sensor_minute"
    assert table_show_command("archive-sensors") == "penstock table show sensors --kind raw"


def test_an_invalid_pipeline_is_logged_and_skipped(
    write: WriteCatalogFile, caplog: pytest.LogCaptureFixture
) -> None:
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("two.py", "two = ")
    with caplog.at_level(logging.WARNING):
        assert [plan.name for plan in load_valid_plans()] == ["one"]
    assert "Pipeline skipped; cannot load it (pipeline=two)" in caplog.text
    assert "invalid syntax" in str(find_stream_error("two"))
    assert "two" in list_stream_names()


def test_each_change_of_a_file_changes_the_fingerprint(write: WriteCatalogFile) -> None:
    file = write(
        "one.py", "    from penstock.pipelines.catalog import _shared" + PIPELINE_TEMPLATE.format(name="one")
    )
    fingerprints = [definition_fingerprint("one")]
    write("_shared.py", "X = 1")
    fingerprints.append(definition_fingerprint("one"))
    write("_shared.py", "X = 10")
    fingerprints.append(definition_fingerprint("one"))
    file.unlink()
    fingerprints.append(definition_fingerprint("one"))
    assert len(set(fingerprints)) == 4
    assert fingerprints[-1] == definition_fingerprint("one")


def test_a_changed_file_is_found(write: WriteCatalogFile) -> None:
    write("one.py", "from penstock.pipelines.catalog import _shared")
    shared = write("_shared.py", "X = 1")
    changed = shared.stat().st_mtime_ns // 1_000_000
    assert find_changed_file("one", changed + 10_000) is None
    os.utime(shared, ns=(0, (changed + 20_000) * 1_000_000))
    assert find_changed_file("one", changed + 10_000) == shared


@pytest.mark.parametrize("name", ["one.py", "one.yaml"])
@pytest.mark.parametrize(("folder", "topic", "is_reported"), [
    ("contracts", "sensors", True),
    ("contracts", "sensors-2", False),
    ("suites/topics", "sensors", True),
    ("suites/latest", "sensors", False),
])  # fmt: skip
def test_a_changed_contract_or_suite_of_an_input_is_found(
    write: WriteCatalogFile,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    folder: str,
    topic: str,
    is_reported: bool,
) -> None:
    file = write(name, PIPELINE_TEMPLATE.format(name="one") if name.endswith(".py") else "read: sensors\n")
    folders = {"contracts": file.parents[1] / "contracts", "suites": file.parents[1] / "suites"}
    declared = write(f"../{folder}/{topic}.yaml", "changed: yes")
    monkeypatch.setattr("penstock.ingestion.contracts.CATALOG_FOLDER", folders["contracts"])
    monkeypatch.setattr("penstock.quality.expectations.suite.SUITES_FOLDER", folders["suites"])
    time_ms = file.stat().st_mtime_ns // 1_000_000 + 10_000
    os.utime(declared, ns=(0, (time_ms + 20_000) * 1_000_000))
    changed_file = find_changed_file("one", time_ms)
    assert (changed_file is not None and changed_file.resolve() == declared.resolve()) == is_reported
