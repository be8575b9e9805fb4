"""Runs the DStream code of all operations on the page in Spark, over the same queues."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.comparisons.dstreams.input_batches import (
    IDLE_BATCH_COUNT,
    INPUT_BATCHES,
    SECOND_INPUT_BATCHES,
    advance_clock,
    use_manual_clock,
)
from tests.comparisons.dstreams.verbs_page import read_verbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import DStream, StreamingContext

BATCHES_TIMEOUT_S = 300
ElementCounts = Counter[tuple[Any, ...]]


class BatchCollector:
    """Collects the elements of DStream batches by batch time."""

    def __init__(self) -> None:
        self.batches: dict[Any, list[tuple[str, Any]]] = {}
        self.condition = threading.Condition()

    def add_batch(self, time: Any, rdd: Any) -> None:
        """Add a batch."""
        elements = rdd.collect()
        with self.condition:
            self.batches[time] = elements
            self.condition.notify_all()

    def wait_for_batches(self, batch_count: int) -> None:
        """Wait until this number of batches has arrived."""
        with self.condition:
            if not self.condition.wait_for(lambda: len(self.batches) >= batch_count, BATCHES_TIMEOUT_S):
                raise RuntimeError(
                    f"{len(self.batches)} of {batch_count} batches of DStreams within {BATCHES_TIMEOUT_S} s"
                )


COLLECTOR = BatchCollector()


def collect_batch(time: Any, rdd: Any) -> None:
    """Add a batch. A module-level function, because Spark's checkpoint must pickle the callback."""
    COLLECTOR.add_batch(time, rdd)


def first_of(pair: tuple[int, int]) -> int:
    """Return the first element of a pair."""
    return pair[0]


def run_verbs_in_dstreams(spark: "SparkSession", checkpoint: Path) -> Mapping[str, list[ElementCounts]]:
    """Return the elements of each batch by operation."""
    from pyspark.streaming import StreamingContext

    COLLECTOR.batches.clear()
    with use_manual_clock(spark):
        ssc = StreamingContext(spark.sparkContext, 1)
        ssc.checkpoint(str(checkpoint))
        try:
            ssc.union(*tag_verb_streams(build_page_namespace(ssc, spark))).foreachRDD(collect_batch)
            ssc.start()
            advance_clock(ssc, len(INPUT_BATCHES) + IDLE_BATCH_COUNT)
            COLLECTOR.wait_for_batches(len(INPUT_BATCHES) + IDLE_BATCH_COUNT)
        finally:
            ssc.stop(stopSparkContext=False, stopGraceFully=False)
    in_order = [COLLECTOR.batches[time] for time in sorted(COLLECTOR.batches)]
    return {
        verb: [
            Counter(to_row_tuple(element) for name, element in batch if name == verb) for batch in in_order
        ]
        for verb in read_verbs()
    }


def tag_verb_streams(page_names: Mapping[str, Any]) -> "Iterator[DStream[tuple[str, Any]]]":
    """Yield the stream of each operation with tagged elements, so that one job can collect all of them."""
    for verb, (code, _) in read_verbs().items():
        namespace = dict(page_names)
        exec(code, namespace)
        yield namespace["theirs"].map(lambda element, verb=verb: (verb, element))


def build_page_namespace(ssc: "StreamingContext", spark: "SparkSession") -> Mapping[str, Any]:
    """Return the names that the page's Spark code uses."""
    queues = [
        [spark.sparkContext.parallelize(batch, 1) for batch in batches_or_lines]
        for batches_or_lines in (INPUT_BATCHES, SECOND_INPUT_BATCHES)
    ]
    lines, more = (ssc.queueStream(queue) for queue in queues)
    words = lines.flatMap(lambda line: line.split())
    pairs = words.map(lambda word: (word, 1))
    word_lines, more_word_lines = (
        batches_or_lines.flatMap(lambda line: [(word, line) for word in line.split()])
        for batches_or_lines in (lines, more)
    )
    return {
        "said": word_lines,
        "also": more_word_lines,
        "lines": lines,
        "more": more,
        "words": words,
        "pairs": pairs,
        "first_of": first_of,
    }


def to_row_tuple(element: Any) -> tuple[Any, ...]:
    """Return an element as a row tuple."""
    return element if isinstance(element, tuple) else (element,)
