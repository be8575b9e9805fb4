"""Every recorded case through Spark, the batch engine and Delta: as recorded, and as the reference has it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.pipelines.conformance.dialects.translation import load_translated_cases
from tests.pipelines.conformance.transcripts.test_figures import NAMED, figure_case
from tests.pipelines.conformance.transcripts.test_recorded_cases import FILES, known_differences
from tests.pipelines.conformance.transcripts.test_runner import RIGHT, wrong
from tests.pipelines.recorded_answers import load_recorded_document, recorded_file

from penstock.conformance import CaseVerdict, ReferenceEngine, load_case_nodes, run_cases
from penstock.conformance.on_spark import SparkEngine
from penstock.conformance.pane_comparison import normalize_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent


def on_both(session: "SparkSession", nodes: Sequence[Any]) -> list[tuple[CaseVerdict, CaseVerdict]]:
    """The verdicts of Spark and of the reference evaluator, case by case."""
    return list(zip(run_cases(nodes, SparkEngine(session)), run_cases(nodes, ReferenceEngine()), strict=True))


def in_any_order(got: Any) -> Any:
    """What came, each list of panes sorted; an error as it is."""
    if isinstance(got, dict):
        return got
    return [sorted(pane_text(pane) for pane in part) if isinstance(part, list) else part for part in got]


def pane_text(pane: dict[str, Any]) -> str:
    """A pane as text; the values of one are in no order, and a column of numbers has one type."""
    values = {"values": sorted(map(normalize_value, pane["values"]))} if "values" in pane else {}
    return repr({**pane, **values})


@pytest.mark.parametrize("file", FILES)
def test_recorded_cases_come_out_on_spark_as_they_do_in_the_reference(
    spark: "SparkSession", file: str
) -> None:
    listed = yaml.safe_load((HERE / "spark_differences.yaml").read_text(encoding="utf-8"))
    differences = listed.get(Path(file).name) or {}
    pairs = on_both(spark, load_translated_cases([recorded_file(file)]))
    differing = {ours.id for ours, _ in pairs if not ours.is_ok}
    assert differing - set(known_differences(file)) == set(differences)
    ours, theirs = ([p for p in column if p.id not in differences] for column in zip(*pairs, strict=True))
    assert [in_any_order(verdict.actual) for verdict in ours] == [in_any_order(v.actual) for v in theirs]


def test_the_contract_and_the_papers_figures_come_out_on_spark(spark: "SparkSession") -> None:
    figures = [figure_case(load_recorded_document(f"dataflow/{file}"), file, name) for file, name in NAMED]
    pairs = on_both(spark, [*load_case_nodes([HERE / "semantics_cases.yaml"]), *figures])
    differing = [(o.id, o.expected, o.actual) for o, _ in pairs if not o.is_ok]
    assert differing == []
    assert [in_any_order(o.actual) for o, _ in pairs] == [
        in_any_order(reference.actual) for o, reference in pairs
    ]


def test_a_case_that_cannot_be_run_says_so_and_stops_no_other(spark: "SparkSession") -> None:
    nowhere = wrong(id="nowhere", window={"type": "calendar", "unit": "day", "zone": "Europe/Atlantis"})
    verdicts = list(run_cases([RIGHT, nowhere, wrong(id="two")], SparkEngine(spark)))
    assert [(v.id, v.is_ok) for v in verdicts] == [("right", True), ("nowhere", False), ("two", True)]
    assert "Europe/Atlantis" in verdicts[1].actual["error"]


def test_a_record_that_spark_cannot_read_is_in_no_window(spark: "SparkSession") -> None:
    far = {"elements": [{"key": "k", "value": 2**70, "ts": 1}]}
    (verdict,) = run_cases([wrong(steps=[far, *RIGHT["steps"]])], SparkEngine(spark))
    assert verdict.is_ok
