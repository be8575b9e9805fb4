"""Every case on Spark, the batch engine and Delta gives the verdict and the panes of the reference."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.pipelines.conformance.dialects.translation import load_translated_cases
from tests.pipelines.conformance.transcripts.test_figures import FIGURE_NAMES, build_figure_case
from tests.pipelines.conformance.transcripts.test_recorded_cases import FILES, load_known_differences
from tests.pipelines.conformance.transcripts.test_runner import VALID_CASE, change_case
from tests.pipelines.recorded_answers import load_recorded_document, recorded_file

from penstock.conformance import CaseVerdict, ReferenceEngine, load_case_nodes, run_cases
from penstock.conformance.on_spark import SparkEngine
from penstock.conformance.pane_comparison import normalize_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent


def run_on_both_engines(
    session: "SparkSession", nodes: Sequence[Any]
) -> list[tuple[CaseVerdict, CaseVerdict]]:
    """Return the verdicts of Spark and of the reference, case by case."""
    return list(zip(run_cases(nodes, SparkEngine(session)), run_cases(nodes, ReferenceEngine()), strict=True))


def sort_panes(actual: Any) -> Any:
    """Return the actual result with each list of panes sorted, or the error."""
    if isinstance(actual, dict):
        return actual
    return [
        sorted(describe_pane(pane) for pane in part) if isinstance(part, list) else part for part in actual
    ]


def describe_pane(pane: dict[str, Any]) -> str:
    """Describe a pane as text, with its list of values sorted and normalized."""
    values = {"values": sorted(map(normalize_value, pane["values"]))} if "values" in pane else {}
    return repr({**pane, **values})


@pytest.mark.parametrize("file", FILES)
def test_recorded_cases_on_spark_equal_the_reference(spark: "SparkSession", file: str) -> None:
    listed = yaml.safe_load((HERE / "spark_differences.yaml").read_text(encoding="utf-8"))
    differences = listed.get(Path(file).name) or {}
    pairs = run_on_both_engines(spark, load_translated_cases([recorded_file(file)]))
    differing = {ours.id for ours, _ in pairs if not ours.is_ok}
    assert differing - set(load_known_differences(file)) == set(differences)
    ours, theirs = ([p for p in column if p.id not in differences] for column in zip(*pairs, strict=True))
    assert [sort_panes(verdict.actual) for verdict in ours] == [sort_panes(v.actual) for v in theirs]


def test_the_semantics_cases_and_figures_pass_on_spark(spark: "SparkSession") -> None:
    figures = [
        build_figure_case(load_recorded_document(f"dataflow/{file}"), file, name)
        for file, name in FIGURE_NAMES
    ]
    pairs = run_on_both_engines(spark, [*load_case_nodes([HERE / "semantics_cases.yaml"]), *figures])
    differing = [(o.id, o.expected, o.actual) for o, _ in pairs if not o.is_ok]
    assert differing == []
    assert [sort_panes(o.actual) for o, _ in pairs] == [
        sort_panes(reference.actual) for o, reference in pairs
    ]


def test_a_case_that_cannot_run_fails_alone(spark: "SparkSession") -> None:
    unknown_zone = change_case(
        id="nowhere", window={"type": "calendar", "unit": "day", "zone": "Europe/Atlantis"}
    )
    verdicts = list(run_cases([VALID_CASE, unknown_zone, change_case(id="two")], SparkEngine(spark)))
    assert [(v.id, v.is_ok) for v in verdicts] == [("right", True), ("nowhere", False), ("two", True)]
    assert "Europe/Atlantis" in verdicts[1].actual["error"]


def test_an_unreadable_record_is_in_no_window(spark: "SparkSession") -> None:
    too_large = {"elements": [{"key": "k", "value": 2**70, "ts": 1}]}
    (verdict,) = run_cases([change_case(steps=[too_large, *VALID_CASE["steps"]])], SparkEngine(spark))
    assert verdict.is_ok
