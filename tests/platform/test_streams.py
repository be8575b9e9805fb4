"""Which streams there are, and how each is looked at."""

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


def test_there_is_a_stream_for_each_pipeline_and_an_archive_for_each_topic() -> None:
    expected = (*catalog.pipeline_names(), *(f"archive-{topic}" for topic in list_contract_names()))
    assert list_stream_names() == expected
    for name in list_stream_names():
        assert find_stream_error(name) is None


@pytest.mark.parametrize("name", ["nonsense", "archive-nonsense", "archive-"])
def test_a_stream_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match=name):
        find_stream_error(name)


def test_each_stream_is_shown_by_a_command() -> None:
    assert table_show_command("sensor_minute") == "penstock table show sensor_minute"
    assert table_show_command("archive-sensors") == "penstock table show sensors --kind raw"


def test_a_broken_pipeline_is_told_and_left_out_and_all_others_are_there(
    write: WriteCatalogFile, caplog: pytest.LogCaptureFixture
) -> None:
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("two.py", "two = ")
    with caplog.at_level(logging.WARNING):
        assert [plan.name for plan in load_valid_plans()] == ["one"]
    assert "Pipeline skipped; cannot load it (pipeline=two)" in caplog.text
    assert "invalid syntax" in str(find_stream_error("two"))
    assert "two" in list_stream_names()


def test_what_a_stream_is_written_in_is_another_word_after_each_change(write: WriteCatalogFile) -> None:
    file = write(
        "one.py", "    from penstock.pipelines.catalog import _shared" + PIPELINE_TEMPLATE.format(name="one")
    )
    words = [definition_fingerprint("one")]
    write("_shared.py", "X = 1")
    words.append(definition_fingerprint("one"))
    write("_shared.py", "X = 10")
    words.append(definition_fingerprint("one"))
    file.unlink()
    words.append(definition_fingerprint("one"))
    assert len(set(words)) == 4
    assert words[-1] == definition_fingerprint("one")


def test_a_change_since_a_moment_is_told_by_its_file(write: WriteCatalogFile) -> None:
    write("one.py", "from penstock.pipelines.catalog import _shared")
    shared = write("_shared.py", "X = 1")
    changed = shared.stat().st_mtime_ns // 1_000_000
    assert find_changed_file("one", changed + 10_000) is None
    os.utime(shared, ns=(0, (changed + 20_000) * 1_000_000))
    assert find_changed_file("one", changed + 10_000) == shared


@pytest.mark.parametrize("name", ["one.py", "one.yaml"])
@pytest.mark.parametrize(("folder", "topic", "told"), [
    ("contracts", "sensors", True),
    ("contracts", "sensors-2", False),
    ("suites/topics", "sensors", True),
    ("suites/latest", "sensors", False),
])  # fmt: skip
def test_so_is_a_change_of_what_is_declared_of_a_topic_that_it_reads(
    write: WriteCatalogFile, monkeypatch: pytest.MonkeyPatch, name: str, folder: str, topic: str, told: bool
) -> None:
    file = write(name, PIPELINE_TEMPLATE.format(name="one") if name.endswith(".py") else "read: sensors\n")
    places = {"contracts": file.parents[1] / "contracts", "suites": file.parents[1] / "suites"}
    declared = write(f"../{folder}/{topic}.yaml", "changed: yes")
    monkeypatch.setattr("penstock.ingestion.contracts.CATALOG_FOLDER", places["contracts"])
    monkeypatch.setattr("penstock.quality.expectations.suite.SUITES_FOLDER", places["suites"])
    moment = file.stat().st_mtime_ns // 1_000_000 + 10_000
    os.utime(declared, ns=(0, (moment + 20_000) * 1_000_000))
    found = find_changed_file("one", moment)
    assert (found is not None and found.resolve() == declared.resolve()) == told
