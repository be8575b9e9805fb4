"""Random cases through Spark, the batch engine and Delta: batch by batch what the reference evaluator says."""

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.transcripts.random_cases import AGGREGATES, Node, case, window_of

from penstock.conformance import ReferenceEngine
from penstock.conformance.case import parse_case
from penstock.conformance.engines import ObservedBatch, Script, ScriptResult
from penstock.conformance.on_spark import SparkEngine
from penstock.engine.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SEED, JOBS, CASES_OF_A_JOB = 20, 12, 5


def cases(seed: int) -> list[Node]:
    """Cases of which some ask Spark for the same, so that one job serves them: hardly two are alike otherwise."""
    chance = random.Random(seed)
    jobs = [(window_of(chance), chance.choice(AGGREGATES)) for _ in range(JOBS)]
    return [
        case(chance, number, *job)
        for number, job in enumerate(job for job in jobs for _ in range(CASES_OF_A_JOB))
    ]


def differences(ours: ScriptResult, theirs: ScriptResult) -> list[Any]:
    """For each batch that differs its number, the rows that Spark alone has, and those of the reference alone."""
    assert not isinstance(ours, PipelineError), ours
    assert not isinstance(theirs, PipelineError), theirs
    pairs = [(rows(one), rows(other)) for one, other in zip(ours, theirs, strict=True)]
    return [
        (number, list((one - other).elements()), list((other - one).elements()))
        for number, (one, other) in enumerate(pairs)
        if one != other
    ]


def rows(observed: ObservedBatch) -> Counter[str]:
    """Panes and late rows.

    A watermark before all records and one after them are no time that a table can show, and what lies between two
    windows has bounds in none.
    """
    told = [replace(pane, watermark=abs(pane.watermark), is_restatement=False) for pane in observed.panes]
    late = [replace(row, watermark=abs(row.watermark)) for row in observed.late]
    nowhere = [replace(row, start=0, end=0) if row.reason == "no_window" else row for row in late]
    return Counter(map(repr, [*told, *nowhere]))


def test_spark_says_of_random_cases_what_the_reference_says(spark: "SparkSession") -> None:
    nodes = cases(SEED)
    scripts: list[Script] = [parse_case(node).script for node in nodes]
    both = zip(nodes, SparkEngine(spark).run(scripts), ReferenceEngine().run(scripts), strict=True)
    found = [(node, differences(ours, theirs)) for node, ours, theirs in both]
    assert [pair for pair in found if pair[1]] == []
