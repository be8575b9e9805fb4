"""The input batches of both systems, and a manual clock for DStreams."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.streaming import StreamingContext

INPUT_BATCHES = [
    ["to be or", "not to be"],
    [],
    ["be quick"],
    ["or not", "or quick be"],
    ["to to to"],
    [],
    ["quick be"],
]
SECOND_INPUT_BATCHES = [["that is not to"], ["the question"], [], ["or not", "be"], ["that"], [], []]
IDLE_BATCH_COUNT = 3
"""Number of empty batches at the end, during which windows expire."""
SECOND_MS = 1_000
CLOCK_SETTING = "spark.streaming.clock"


@contextmanager
def use_manual_clock(spark: "SparkSession") -> "Iterator[None]":
    """Make DStreams use a manual clock that starts at 0, and one partition per shuffle."""
    from pyspark import SparkContext
    from pyspark.streaming.util import TransformFunction

    settings = spark.sparkContext._jsc.sc().conf()
    settings.set(CLOCK_SETTING, "org.apache.spark.util.ManualClock")
    try:
        with (
            patch_attribute(SparkContext, "defaultParallelism", 1),
            patch_attribute(TransformFunction, "call", convert_rdds_to_list(TransformFunction.call)),
            warnings.catch_warnings(),
        ):
            # DStreams are deprecated; this comparison is for people who migrate from them.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        settings.remove(CLOCK_SETTING)


@contextmanager
def patch_attribute(owner: type, name: str, value: object) -> Iterator[None]:
    """Replace an attribute of a class during the block."""
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def convert_rdds_to_list(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call with a Python list instead of a Java list.

    Iterating over a Java list ends with a Java exception, which takes about ten round trips to Java. This took half
    of the total run time.
    """

    def call_with_list(function: Any, milliseconds: int, rdds: Any) -> Any:
        return call(function, milliseconds, [rdds[index] for index in range(len(rdds))])

    return call_with_list


def advance_clock(ssc: "StreamingContext", batch_count: int) -> None:
    """Advance the manual clock by one second for each batch."""
    ssc._jssc.ssc().scheduler().clock().setTime(batch_count * SECOND_MS)
