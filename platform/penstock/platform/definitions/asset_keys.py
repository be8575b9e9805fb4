"""Asset keys, and which topics and tables a plan has."""

from collections.abc import Iterator

from dagster import AssetKey

from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan

SPARK_POOL = "spark"
"""The pool of runs that may start Spark; `dagster.spark_runs` limits how many run at the same time."""


def topic_key(topic: str) -> AssetKey:
    """Return the asset key of a topic."""
    return AssetKey(["topics", topic])


def stream_key(stream: str) -> AssetKey:
    """Return the asset key of a stream, which stands for its committed batches."""
    return AssetKey(["streams", stream])


def archive_key(topic: str) -> AssetKey:
    """Return the asset key of a topic's archive."""
    return AssetKey(["raw", topic])


def backfill_key(pipeline: str) -> AssetKey:
    """Return the asset key of a pipeline's backfills, with one partition for each day."""
    return AssetKey(["runs", pipeline])


def table_key(sink: Sink) -> AssetKey:
    """Return the asset key of a table: its folder in the warehouse and its name."""
    return AssetKey([sink.folder, sink.name])


def list_plan_topics(plan: Plan) -> tuple[str, ...]:
    """Return the topics that a pipeline reads, in the order of its sources."""
    return tuple(source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin))


def list_plan_sinks(plan: Plan) -> Iterator[Sink]:
    """Yield the tables that a pipeline writes, in the order of its stages."""
    for stage in plan.stages:
        yield from stage.sinks
