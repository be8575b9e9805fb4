"""Every recorded case of other systems passes, or is listed with the reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pipelines.conformance.dialects.translation import load_translated_cases
from tests.pipelines.recorded_answers import recorded_file

from penstock.conformance import CaseVerdict, ReferenceEngine, run_cases

FILES = [
    "apex/retraction_cases.json",
    "beam/trigger_transcripts.normalized.json",
    "beam/window_assignment.json",
    "dataflow/streaming_systems_book.json",
    "flink/flink_windows.json",
    "spl/count_delta_punct_windows.json",
]


def load_known_differences(file: str) -> dict[str, Any]:
    listed = yaml.safe_load((Path(__file__).parent / "known_differences.yaml").read_text(encoding="utf-8"))
    return listed.get(Path(file).name) or {}


def run_file(file: str) -> list[CaseVerdict]:
    """Return the verdicts of the reference evaluator."""
    return list(run_cases(load_translated_cases([recorded_file(file)]), ReferenceEngine()))


@pytest.mark.parametrize("file", FILES)
def test_recorded_cases_pass_or_are_listed_with_the_reason(file: str) -> None:
    verdicts = run_file(file)
    assert verdicts
    differing = {verdict.id for verdict in verdicts if not verdict.is_ok}
    assert differing == set(load_known_differences(file))


@pytest.mark.parametrize("file", FILES)
def test_every_field_of_a_recorded_pane_is_compared(file: str) -> None:
    assert {verdict.id: verdict.not_compared for verdict in run_file(file) if verdict.not_compared} == {}
