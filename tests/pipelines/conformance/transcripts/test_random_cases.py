"""Random cases on Spark, the batch engine and Delta equal the reference in each batch."""

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.transcripts.random_cases import (
    AGGREGATES,
    Node,
    generate_case,
    generate_window,
)

from penstock.conformance import ReferenceEngine
from penstock.conformance.case import parse_case
from penstock.conformance.engines import ObservedBatch, Script, ScriptResult
from penstock.conformance.on_spark import SparkEngine
from penstock.engine.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SEED, JOBS, CASES_OF_A_JOB = 20, 12, 5


def generate_cases(seed: int) -> list[Node]:
    """Generate cases. Several share a window and an aggregate, so that one Spark job serves them."""
    random_numbers = random.Random(seed)
    jobs = [(generate_window(random_numbers), random_numbers.choice(AGGREGATES)) for _ in range(JOBS)]
    return [
        generate_case(random_numbers, number, *job)
        for number, job in enumerate(job for job in jobs for _ in range(CASES_OF_A_JOB))
    ]


def find_differences(spark_result: ScriptResult, reference_result: ScriptResult) -> list[Any]:
    """Return for each differing batch its number, the rows only of Spark, and those only of the reference."""
    assert not isinstance(spark_result, PipelineError), spark_result
    assert not isinstance(reference_result, PipelineError), reference_result
    pairs = [
        (count_rows(one), count_rows(other))
        for one, other in zip(spark_result, reference_result, strict=True)
    ]
    return [
        (number, list((one - other).elements()), list((other - one).elements()))
        for number, (one, other) in enumerate(pairs)
        if one != other
    ]


def count_rows(observed: ObservedBatch) -> Counter[str]:
    """Count panes and late rows.

    A watermark before all records and one after them are no time that a table can show, and what lies between two
    windows has bounds in none.
    """
    panes = [replace(pane, watermark=abs(pane.watermark), is_restatement=False) for pane in observed.panes]
    late = [replace(row, watermark=abs(row.watermark)) for row in observed.late]
    late_rows = [replace(row, start=0, end=0) if row.reason == "no_window" else row for row in late]
    return Counter(map(repr, [*panes, *late_rows]))


def test_random_cases_on_spark_equal_the_reference(spark: "SparkSession") -> None:
    nodes = generate_cases(SEED)
    scripts: list[Script] = [parse_case(node).script for node in nodes]
    both = zip(nodes, SparkEngine(spark).run(scripts), ReferenceEngine().run(scripts), strict=True)
    found = [
        (node, find_differences(spark_result, reference_result))
        for node, spark_result, reference_result in both
    ]
    assert [pair for pair in found if pair[1]] == []
