"""Judges the records that SQL cannot prove valid.

A batch is read without Python at first. Its unproven records are quarantined with the reason UNPROVEN, and judged
when they are fetched. Nearly always all of them are invalid. If one is valid, the batch is read again with the
judge in Spark's plan, which gives the record its value.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.record_parser import IGNORED, WriterSchemas
from penstock.engine.spark.parse.source_rules import build_record_rules
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import ReadJson
from penstock.ingestion.contracts.record_judge import record_judge
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.errors import IgnoredRecordError, InvalidRecordError
from penstock.ingestion.registry import ReadableSchemas

if TYPE_CHECKING:
    from pyspark.sql import Column

UNPROVEN = "unproven"
"""The reason of a record that is to be judged. It never reaches a table."""
JUDGED_COLUMN = "_judged"
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


@dataclass(frozen=True)
class TopicRules:
    """The rules of a topic's records, and the schemas that they were written with, as JSON by id."""

    rules: RecordRules
    writer_schemas: tuple[tuple[int, str], ...] = ()


RulesByTopic = Mapping[str, TopicRules | None]


def judge_value(value: bytes, topic_rules: TopicRules | None) -> Verdict:
    """Judge a record. Without rules, only Spark can tell what its record holds."""
    if topic_rules is None:
        return Verdict(MALFORMED)
    try:
        json_value = _open_reader(topic_rules)(value)
        return Verdict(canonical=record_judge(topic_rules.rules).to_canonical_json(json_value))
    except InvalidRecordError as error:
        return Verdict(error.reason)
    except IgnoredRecordError:
        return Verdict(IGNORED)


@cache
def _open_reader(topic_rules: TopicRules) -> ReadJson:
    schemas = {schema_id: json.loads(text) for schema_id, text in topic_rules.writer_schemas}
    return find_record_format(topic_rules.rules.encoding).open_reader(topic_rules.rules, schemas.get)


def collect_rules(sources: Sequence[PlanSource], writer_schemas: WriterSchemas) -> RulesByTopic:
    """Return the rules of every input by topic."""
    return {
        topic_of(source): _find_topic_rules(source, writer_schemas.get(topic_of(source), ReadableSchemas({})))
        for source in sources
    }


def _find_topic_rules(source: PlanSource, written: ReadableSchemas) -> TopicRules | None:
    rules = build_record_rules(source)
    texts = tuple((schema_id, json.dumps(schema)) for schema_id, schema in written.schemas.items())
    return None if rules is None else TopicRules(rules, texts)


def judge_column(topic: str, suspect: str, rules_by_topic: RulesByTopic) -> "Column":
    """Return the column of verdicts on the values of a column; null for a null."""
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.functions import arrow_udf

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
