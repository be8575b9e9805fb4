"""What things are called in Dagster."""

from collections.abc import Iterator

from dagster import AssetKey

from penstock.engine.plan import Plan, Sink, TopicOrigin
from penstock.engine.tables.table_paths import sink_folder

SPARK_POOL = "spark"
"""The pool of runs that may start a Spark of their own: as many at once as `dagster.spark_runs` says."""


def topic_key(topic: str) -> AssetKey:
    """The asset of a topic."""
    return AssetKey(["topics", topic])


def stream_key(stream: str) -> AssetKey:
    """The asset of a stream: what its host has committed."""
    return AssetKey(["streams", stream])


def archive_key(topic: str) -> AssetKey:
    """The asset of a topic's archive."""
    return AssetKey(["raw", topic])


def backfill_key(pipeline: str) -> AssetKey:
    """The asset of a pipeline's backfills: what it makes of days of its topics' archives."""
    return AssetKey(["runs", pipeline])


def table_key(sink: Sink) -> AssetKey:
    """The asset of a table, by the folder of the warehouse that it is in and its name."""
    return AssetKey([sink_folder(sink), sink.table])


def list_plan_topics(plan: Plan) -> tuple[str, ...]:
    """The topics that a pipeline reads, in its own order."""
    return tuple(source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin))


def list_plan_sinks(plan: Plan) -> Iterator[Sink]:
    """The tables that a pipeline writes, in its own order."""
    for stage in plan.stages:
        yield from stage.sinks
