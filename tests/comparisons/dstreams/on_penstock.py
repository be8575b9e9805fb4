"""Runs the Penstock code of each operation on the page over the same batches."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.comparisons.dstreams.input_batches import (
    IDLE_BATCH_COUNT,
    INPUT_BATCHES,
    SECOND_INPUT_BATCHES,
    SECOND_MS,
)
from tests.comparisons.dstreams.verbs_page import read_verbs
from tests.pipelines.memory_topics import create_memory_source

from penstock import stream
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.engine.history.reexecute import BatchToReexecute, reexecute_batches
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.ingestion.contracts import load_contract
from penstock.stream import Pipeline, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ProgressReporter = Callable[[str], None]


@dataclass(frozen=True)
class Total:
    """The number of occurrences of a word."""

    n: int = 0


def running_count(call: KeyContext[Total]) -> KeyUpdate[Total]:
    """Add the new records to the running count."""
    total = Total((call.state.n if call.state else 0) + len(call.records))
    return KeyUpdate(total, [OutputRow({"n": total.n})])


def in_capitals(df: "DataFrame") -> "DataFrame":
    """Return words in capitals."""
    from pyspark.sql.functions import upper

    return df.withColumn("word", upper("word"))


def all_in_capitals(words: pa.Table) -> pa.Table:
    """Return words in capitals (vectorized)."""
    return words.set_column(words.column_names.index("word"), "word", pc.utf8_upper(words["word"]))


def words_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the words of a line."""
    return [{"word": word, "text": line["text"]} for word in line["text"].split()]


def length_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the length of a line."""
    return {"length": len(line["text"])}


PAGE_PREAMBLE = """
made = {"word": "STRING", "text": "STRING"}
words = lines.flat_map(words_of, returns=made)
more_words = more.flat_map(words_of, returns=made)
first_word = lines.sql("SELECT *, split(text, ' ')[0] AS first FROM input")
batch = fixed("1 second", time="processing")
window = sliding("3 seconds", "1 second", time="processing")
"""
PAGE_FUNCTIONS = (running_count, Total, in_capitals, all_in_capitals, words_of, length_of)


def build_source(
    spark: "SparkSession", topics: Mapping[str, list[list[str]]]
) -> tuple[InMemorySource, list[BatchToReexecute]]:
    """Return the input as records of topics, and a batch in the middle and at the end of each second."""
    values: dict[str, list[bytes]] = {topic: [] for topic in topics}
    batches = []
    for number in range(len(INPUT_BATCHES) + IDLE_BATCH_COUNT):
        clock = number * SECOND_MS + SECOND_MS // 2
        ranges = []
        for topic, content in topics.items():
            texts = content[number] if number < len(content) else []
            start_offset = len(values[topic])
            values[topic] += [json.dumps({"at": clock, "text": text}).encode() for text in texts]
            ranges += [OffsetRange(topic, 0, start_offset, start_offset + len(texts))] if texts else []
        batches += [BatchToReexecute(clock, tuple(ranges))] if ranges else []
        batches.append(BatchToReexecute((number + 1) * SECOND_MS))
    batches += [
        BatchToReexecute((len(INPUT_BATCHES) + IDLE_BATCH_COUNT + extra_second) * SECOND_MS)
        for extra_second in range(1, IDLE_BATCH_COUNT + 1)
    ]
    return create_memory_source(spark, values), batches


def build_page_namespace() -> dict[str, Any]:
    """Return the names that the page's Penstock code uses."""
    topics = {
        "lines": load_contract("lines"),
        "more": replace(load_contract("lines"), topic="more"),
    }

    def read_topics(*names: str) -> Pipeline:
        return read(*(topics[name] for name in names))

    names: dict[str, Any] = {name: getattr(stream, name) for name in stream.__all__}
    names |= {page_function.__name__: page_function for page_function in PAGE_FUNCTIONS}
    names |= {"read": read_topics, "lines": read_topics("lines"), "more": read_topics("more")}
    exec(PAGE_PREAMBLE, names)
    return names


def run_verbs_here(
    spark: "SparkSession", folder: Path, report_progress: ProgressReporter
) -> Mapping[str, pa.Table]:
    """Return all panes by operation. Operations that read the same topics run in one pass."""
    pipelines_by_topics = defaultdict[Any, dict[str, Pipeline]](dict)
    for verb, pipeline in build_pipelines().items():
        pipelines_by_topics[tuple(source.name for source in pipeline.to_plan(_verb_table(verb)).sources)][
            verb
        ] = pipeline
    input_batches, panes_by_verb = {"lines": INPUT_BATCHES, "more": SECOND_INPUT_BATCHES}, {}
    for topics, verb_pipelines in pipelines_by_topics.items():
        (first_verb, pipeline), *others = verb_pipelines.items()
        plan = pipeline.also(*(other_pipeline for _, other_pipeline in others)).to_plan(
            _verb_table(first_verb)
        )
        report_progress(f"{len(verb_pipelines)} operations over {' and '.join(topics)}")
        memory_source, batches = build_source(spark, {topic: input_batches[topic] for topic in topics})
        panes = reexecute_batches(
            plan, spark, memory_source, batches, folder / "-".join(topics), lambda _: None
        )
        for verb in verb_pipelines:
            verb_panes = panes.panes_of(_verb_table(verb))
            panes_by_verb[verb] = verb_panes.filter(pc.equal(verb_panes.column("kind"), "insert"))
    return panes_by_verb


def build_pipelines() -> Mapping[str, Pipeline]:
    """Return the pipeline of each operation, with a pane log."""
    namespace, pipelines_by_verb = build_page_namespace(), {}
    for verb, (_, code) in read_verbs().items():
        exec(code, namespace)
        pipelines_by_verb[verb] = namespace["ours"].write(_verb_table(verb), mode="log")
    return pipelines_by_verb


def _verb_table(verb: str) -> str:
    return verb.replace(" ", "_")
