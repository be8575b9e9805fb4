"""Small teaching examples: the stateful word count, the watermarked stream, and the accumulation modes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.conformance.recorded.spark_evaluation import evaluate_on_spark
from tests.pipelines.conformance.transcripts.test_on_spark import sort_panes
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.conformance import ReferenceEngine, run_cases
from penstock.conformance.on_spark import SparkEngine
from penstock.conformance.reference import InputBatch, InputRecord, evaluate
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class WordCount:
    """The count of a word."""

    n: int = 0


CALLS: list[list[Any]] = []
"""The calls of the counting function: key, number of records, and the state before."""


def count_words(call: KeyContext[WordCount]) -> KeyUpdate[WordCount]:
    before = call.state or WordCount()
    CALLS.append([call.key[0], len(call.records), before.n])
    now = WordCount(before.n + len(call.records))
    return KeyUpdate(now, [OutputRow({"n": now.n})])


WORD_COUNT = Plan(
    "words",
    (PlanSource("words", TopicOrigin("words"), (Column("word", "STRING"), Column("at", "BIGINT")), "at"),),
    (
        Stage(
            "counts",
            ("words",),
            StatefulFunction(function_ref(count_words), state_type(WordCount), (Column("n", "BIGINT"),)),
            (),
            key=("word",),
            sinks=(PaneLog("counts"),),
        ),
    ),
)


def batches_of_example(example: Any) -> list[InputBatch]:
    words = [(number, word) for number, batch in enumerate(example["batches"]) for word in batch]
    records = [InputRecord("words", 0, at, {"word": word, "at": at}) for at, (_, word) in enumerate(words)]
    return [
        InputBatch(
            number, number, tuple(r for r, (of, _) in zip(records, words, strict=True) if of == number)
        )
        for number, _ in enumerate(example["batches"])
    ]


def group_calls_by_batch(calls: list[Any], recorded_calls: list[list[Any]]) -> list[list[Any]]:
    """Group the calls by batch, sorted; there are as many as were recorded."""
    assert len(calls) == sum(map(len, recorded_calls))
    rest = iter(calls)
    return [sorted(next(rest) for _ in some) for some in recorded_calls]


def test_the_word_count_function_is_called_only_for_the_words_of_a_batch() -> None:
    example = load_recorded_document("decks/cases.json")["stateful_word_count"]
    CALLS.clear()
    outcomes = evaluate(WORD_COUNT, batches_of_example(example))
    shown = [sorted([pane.key[0], dict(pane.values)["n"]] for pane in outcome.panes) for outcome in outcomes]
    assert shown == example["outputs"]
    assert group_calls_by_batch(CALLS, example["calls"]) == example["calls"]


@pytest.mark.spark
def test_the_word_count_on_spark_makes_the_recorded_calls_and_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    example = load_recorded_document("decks/cases.json")["stateful_word_count"]
    CALLS.clear()
    panes = evaluate_on_spark(spark, WORD_COUNT, batches_of_example(example), tmp_path)
    shown = [sorted([pane.key[0], dict(pane.values)["n"]] for pane in some) for some in panes]
    assert shown == example["outputs"]
    assert group_calls_by_batch(CALLS, example["calls"]) == example["calls"]


@pytest.mark.spark
def test_the_watermarked_stream_and_accumulation_modes_on_spark(spark: "SparkSession") -> None:
    cases = [build_watermark_case(), *build_accumulation_cases()]
    on_spark, on_reference = (
        list(run_cases(cases, engine)) for engine in (SparkEngine(spark), ReferenceEngine())
    )
    assert on_spark[0].is_ok, (on_spark[0].expected, on_spark[0].actual)
    assert [sort_panes(verdict.actual) for verdict in on_spark] == [
        sort_panes(verdict.actual) for verdict in on_reference
    ]


def build_watermark_case() -> dict[str, Any]:
    arrivals = load_recorded_document("decks/cases.json")["watermark_stream"]["arrivals"]
    steps = [
        # W(t): no element at or before t is expected any more, which is our watermark t + 1.
        {"watermark": int(item[2:-1]) + 1}
        if isinstance(item, str)
        else {"elements": [{"value": item, "ts": item}]}
        for item in arrivals
    ]
    return {
        "id": "watermark_stream",
        "window": {"type": "fixed", "size": 1},
        "trigger": {"type": "default"},
        "steps": [*steps, {"watermark": "inf"}, {"expect_late": []}],
        "combine": "count",
        "expect_all": [
            {"window": [time, time + 1], "count": count}
            for time in sorted({item for item in arrivals if isinstance(item, int)})
            if (count := arrivals.count(time))
        ],
    }


def test_no_element_of_the_watermarked_stream_is_late() -> None:
    (verdict,) = run_cases([build_watermark_case()], ReferenceEngine())
    assert verdict.is_ok, (verdict.expected, verdict.actual)


def build_accumulation_cases() -> list[dict[str, Any]]:
    """Sums per hour, every ten minutes of processing time if there is something new."""
    question = load_recorded_document("decks/cases.json")["dataflow_questions"]
    assert question["how"] == ["discarding", "accumulating", "accumulating and retracting"]
    return [
        {
            "id": how,
            "unit": "min",
            "window": {"type": "fixed", "size": 60},
            "trigger": {"type": "repeatedly", "of": {"type": "every", "period": 10}},
            "accumulation": how.replace(" ", "_"),
            "combine": "sum",
            "steps": [
                {"elements": [{"key": "k", "value": 3, "ts": 5}]},
                {"processing_time": 10},
                {"elements": [{"key": "k", "value": 4, "ts": 6}]},
                {"processing_time": 20},
                {"processing_time": 30},
                {"expect": []},
            ],
        }
        for how in question["how"]
    ]


def test_each_accumulation_mode_gives_its_panes() -> None:
    verdicts = run_cases(build_accumulation_cases(), ReferenceEngine())
    shown = {each.id: [(pane["kind"], pane["sum"]) for pane in each.actual[0]] for each in verdicts}
    assert shown == {
        "discarding": [("insert", 3), ("insert", 4)],
        "accumulating": [("insert", 3), ("insert", 7)],
        "accumulating and retracting": [("insert", 3), ("retract", 3), ("insert", 7)],
    }
