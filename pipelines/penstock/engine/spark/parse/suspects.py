"""Judges the records that SQL cannot prove valid.

A batch is read without Python at first. Its unproven records are quarantined with the reason UNPROVEN, and judged
when they are fetched. Nearly always all of them are invalid. If one is valid, the batch is read again with the
judge in Spark's plan, which gives the record its value.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.source_rules import build_record_rules
from penstock.ingestion.contracts.record_judge import record_judge
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.errors import InvalidRecordError

if TYPE_CHECKING:
    from pyspark.sql import Column

UNPROVEN = "unproven"
"""The reason of a record that is to be judged. It never reaches a table."""
MALFORMED = "malformed"
_VERDICT_TYPE = pa.struct([("reason", pa.string()), ("canonical", pa.string())])
BATCHES_WITH_JUDGE = 100


@dataclass
class JudgeMode:
    """Whether the plan of a batch contains the judge: from a batch with valid suspects on, for some batches."""

    remaining_batches: float = 0

    @property
    def is_on(self) -> bool:
        """Whether the judge is in the plan."""
        return self.remaining_batches > 0

    def turn_on(self) -> None:
        """Put the judge into the plans of this batch and the next ones."""
        self.remaining_batches = BATCHES_WITH_JUDGE

    def end_batch(self) -> None:
        """Count a batch."""
        self.remaining_batches = max(0, self.remaining_batches - 1)


def judge_always() -> JudgeMode:
    """Return the mode of jobs that cannot be repeated with the judge."""
    return JudgeMode(math.inf)


@dataclass(frozen=True)
class Verdict:
    """The reason of an invalid record, or the JSON from which Spark reads a valid one."""

    reason: str | None = None
    canonical: bytes | None = None


def judge_value(value: bytes, rules: RecordRules | None) -> Verdict:
    """Judge a record. Without rules, only Spark can tell what its record holds."""
    if rules is None:
        return Verdict(MALFORMED)
    try:
        return Verdict(canonical=record_judge(rules).to_canonical_json(value))
    except InvalidRecordError as error:
        return Verdict(error.reason)


def collect_rules(sources: Sequence[PlanSource]) -> Mapping[str, RecordRules | None]:
    """Return the rules of every input by topic."""
    return {topic_of(source): build_record_rules(source) for source in sources}


def judge_column(topic: str, suspect: str, sources: Sequence[PlanSource]) -> "Column":
    """Return the column of verdicts on the values of a column; null for a null."""
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.functions import arrow_udf

    rules_by_topic = collect_rules(sources)

    def judge(topics: pa.Array, values: pa.Array) -> pa.Array:
        verdicts: list[dict[str, str | None] | None] = [None] * len(values)
        if values.null_count < len(values):
            for index, value in enumerate(values.to_pylist()):
                if value is not None:
                    verdict = judge_value(value, rules_by_topic.get(topics[index].as_py()))
                    text = None if verdict.canonical is None else verdict.canonical.decode()
                    verdicts[index] = {"reason": verdict.reason, "canonical": text}
        return pa.array(verdicts, _VERDICT_TYPE)

    make_udf: Callable[..., Callable[..., Column]] = arrow_udf  # the stubs do not know Arrow's types
    return make_udf(judge, "struct<reason: string, canonical: string>")(col(topic), col(suspect))
