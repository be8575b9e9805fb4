"""Which streams there are, and how each is looked at."""

import pytest

from penstock.ingestion.contracts import contract_names
from penstock.pipelines import catalog
from penstock.pipelines.errors import PipelineError
from penstock.platform.streams import check_stream, shown_by, stream_names


def test_there_is_a_stream_for_each_pipeline_and_an_archive_for_each_topic() -> None:
    expected = (*catalog.names(), *(f"archive-{topic}" for topic in contract_names()))
    assert stream_names() == expected
    for name in stream_names():
        check_stream(name)


@pytest.mark.parametrize("name", ["nonsense", "archive-nonsense", "archive-"])
def test_a_stream_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(PipelineError, match=name):
        check_stream(name)


def test_each_stream_is_shown_by_a_command() -> None:
    assert shown_by("sensor_minute") == "penstock table show sensor_minute"
    assert shown_by("archive-sensors") == "penstock table show sensors --kind raw"
