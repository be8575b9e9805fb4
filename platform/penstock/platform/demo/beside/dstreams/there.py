"""What Spark's DStreams say of each batch: all verbs of the page at once, over the same queue."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.platform.demo.beside.dstreams.batches import BATCHES, MORE, QUIET, clock_of_ours, set_clock
from penstock.platform.demo.beside.dstreams.page import verbs
from penstock.platform.errors import DemoError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import DStream, StreamingContext

PATIENCE_S = 300
Elements = Counter[tuple[Any, ...]]


class Heard:
    """What DStreams said, by the time of the batch."""

    def __init__(self) -> None:
        self.batches: dict[Any, list[tuple[str, Any]]] = {}
        self.changed = threading.Condition()

    def note(self, time: Any, rdd: Any) -> None:
        """Note a batch."""
        said = rdd.collect()
        with self.changed:
            self.batches[time] = said
            self.changed.notify_all()

    def until(self, batches: int) -> None:
        """Wait for so many batches."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.batches) >= batches, PATIENCE_S):
                raise DemoError(f"{len(self.batches)} of {batches} batches of DStreams within {PATIENCE_S} s")


HEARD = Heard()


def hear(time: Any, rdd: Any) -> None:
    """Note a batch. Spark's checkpoint pickles what calls this, and must find nothing in it that waits."""
    HEARD.note(time, rdd)


def first_of(pair: tuple[int, int]) -> int:
    """Return the first of two."""
    return pair[0]


def in_dstreams(spark: "SparkSession", checkpoint: Path) -> Mapping[str, list[Elements]]:
    """Return what each verb says of each batch, as elements of one stream."""
    from pyspark.streaming import StreamingContext

    HEARD.batches.clear()
    with clock_of_ours(spark):
        ssc = StreamingContext(spark.sparkContext, 1)
        ssc.checkpoint(str(checkpoint))
        try:
            ssc.union(*told_apart(known(ssc, spark))).foreachRDD(hear)
            ssc.start()
            set_clock(ssc, len(BATCHES) + QUIET)
            HEARD.until(len(BATCHES) + QUIET)
        finally:
            ssc.stop(stopSparkContext=False, stopGraceFully=False)
    in_order = [HEARD.batches[time] for time in sorted(HEARD.batches)]
    return {
        verb: [Counter(flat(said) for name, said in batch if name == verb) for batch in in_order]
        for verb in verbs()
    }


def told_apart(names: Mapping[str, Any]) -> "Iterator[DStream[tuple[str, Any]]]":
    """Yield the stream of each verb, whose elements say of which verb they are: one job says them all."""
    for verb, (code, _) in verbs().items():
        told = dict(names)
        exec(code, told)  # noqa: S102  the page of this checkout, as it stands
        yield told["theirs"].map(lambda element, verb=verb: (verb, element))


def known(ssc: "StreamingContext", spark: "SparkSession") -> Mapping[str, Any]:
    """Return what the page's code finds of Spark's."""
    queues = [[spark.sparkContext.parallelize(batch, 1) for batch in each] for each in (BATCHES, MORE)]
    lines, more = (ssc.queueStream(queue) for queue in queues)
    words = lines.flatMap(lambda line: line.split())
    pairs = words.map(lambda word: (word, 1))
    said, also = (
        each.flatMap(lambda line: [(word, line) for word in line.split()]) for each in (lines, more)
    )
    return {
        "said": said,
        "also": also,
        "lines": lines,
        "more": more,
        "words": words,
        "pairs": pairs,
        "first_of": first_of,
    }


def flat(element: Any) -> tuple[Any, ...]:
    """Return an element as a row has it: a key, and what is said of it."""
    return element if isinstance(element, tuple) else (element,)
