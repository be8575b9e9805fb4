"""The batches that both are given, and Spark's old streams cutting theirs as soon as they can."""

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
"""Batches without a record at the end, in which windows run out."""
SECOND_MS = 1_000
CLOCK_SETTING = "spark.streaming.clock"


@contextmanager
def use_manual_clock(spark: "SparkSession") -> "Iterator[None]":
    """Have DStreams go by a clock that is set, from 0 on, and cut each shuffle into one part: batches are small."""
    from pyspark import SparkContext
    from pyspark.streaming.util import TransformFunction

    settings = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001  Python's own settings are a copy
    settings.set(CLOCK_SETTING, "org.apache.spark.util.ManualClock")
    try:
        with (
            patch_attribute(SparkContext, "defaultParallelism", 1),
            patch_attribute(TransformFunction, "call", convert_rdds_to_list(TransformFunction.call)),
            warnings.catch_warnings(),
        ):
            # DStreams are deprecated, which is why people come from them.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        settings.remove(CLOCK_SETTING)


@contextmanager
def patch_attribute(owner: type, name: str, value: object) -> Iterator[None]:
    """Have a class show something else by a name, for a while."""
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def convert_rdds_to_list(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same call over a list of Python's.

    A loop over a list of Java's ends by an error there, about which Spark asks Java ten questions before it is
    taken for an end: each step of each verb did so in each batch, for half of the time that all took.
    """

    def call_with_list(function: Any, milliseconds: int, rdds: Any) -> Any:
        return call(function, milliseconds, [rdds[index] for index in range(len(rdds))])

    return call_with_list


def advance_clock(ssc: "StreamingContext", batch_count: int) -> None:
    """Let so many batches of a second be over."""
    ssc._jssc.ssc().scheduler().clock().setTime(batch_count * SECOND_MS)  # noqa: SLF001  there is no other way to it
