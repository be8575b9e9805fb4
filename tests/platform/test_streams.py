"""Which streams there are, and how each is looked at."""

import logging
import os

import pytest
from tests.catalogs import PIPELINE, Write

from penstock.ingestion.contracts import contract_names
from penstock.pipelines import catalog
from penstock.pipelines.errors import PipelineError
from penstock.platform.streams import check_stream, shown_by, sound_plans, stream_names
from penstock.platform.written import changed_since, written_state


def test_there_is_a_stream_for_each_pipeline_and_an_archive_for_each_topic() -> None:
    expected = (*catalog.names(), *(f"archive-{topic}" for topic in contract_names()))
    assert stream_names() == expected
    for name in stream_names():
        assert check_stream(name) is None


@pytest.mark.parametrize("name", ["nonsense", "archive-nonsense", "archive-"])
def test_a_stream_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match=name):
        check_stream(name)


def test_each_stream_is_shown_by_a_command() -> None:
    assert shown_by("sensor_minute") == "penstock table show sensor_minute"
    assert shown_by("archive-sensors") == "penstock table show sensors --kind raw"


def test_a_broken_pipeline_is_told_and_left_out_and_all_others_are_there(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("one.py", PIPELINE.format(name="one"))
    write("two.py", "two = ")
    with caplog.at_level(logging.WARNING):
        assert [plan.name for plan in sound_plans()] == ["one"]
    assert "goes on without two" in caplog.text
    assert "invalid syntax" in str(check_stream("two"))
    assert "two" in stream_names()


def test_what_a_stream_is_written_in_is_another_word_after_each_change(write: Write) -> None:
    file = write("one.py", "    from penstock.pipelines.catalog import _shared" + PIPELINE.format(name="one"))
    words = [written_state("one")]
    write("_shared.py", "X = 1")
    words.append(written_state("one"))
    write("_shared.py", "X = 10")
    words.append(written_state("one"))
    file.unlink()
    words.append(written_state("one"))
    assert len(set(words)) == 4
    assert words[-1] == written_state("one")


def test_a_change_since_a_moment_is_told_by_its_file(write: Write) -> None:
    write("one.py", "from penstock.pipelines.catalog import _shared")
    shared = write("_shared.py", "X = 1")
    changed = shared.stat().st_mtime_ns // 1_000_000
    assert changed_since("one", changed + 10_000) is None
    os.utime(shared, ns=(0, (changed + 20_000) * 1_000_000))
    assert changed_since("one", changed + 10_000) == shared


@pytest.mark.parametrize("name", ["one.py", "one.yaml"])
@pytest.mark.parametrize(("folder", "topic", "told"), [
    ("contracts", "sensors", True),
    ("contracts", "sensors-2", False),
    ("suites/topics", "sensors", True),
    ("suites/latest", "sensors", False),
])  # fmt: skip
def test_so_is_a_change_of_what_is_declared_of_a_topic_that_it_reads(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, folder: str, topic: str, told: bool
) -> None:
    file = write(name, PIPELINE.format(name="one") if name.endswith(".py") else "read: sensors\n")
    places = {"contracts": file.parents[1] / "contracts", "suites": file.parents[1] / "suites"}
    declared = write(f"../{folder}/{topic}.yaml", "changed: yes")
    monkeypatch.setattr("penstock.ingestion.contracts.CATALOG", places["contracts"])
    monkeypatch.setattr("penstock.quality.expectations.suite.FOLDER", places["suites"])
    moment = file.stat().st_mtime_ns // 1_000_000 + 10_000
    os.utime(declared, ns=(0, (moment + 20_000) * 1_000_000))
    found = changed_since("one", moment)
    assert (found is not None and found.resolve() == declared.resolve()) == told
