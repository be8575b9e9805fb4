"""What things are called in Dagster."""

from collections.abc import Iterator

from dagster import AssetKey

from penstock.pipelines.plan import Plan, Sink, Topic
from penstock.pipelines.tables.places import folder_of

SPARK = "spark"
"""The pool of runs that may start a Spark of their own: as many at once as `dagster.spark_runs` says."""


def topic_key(topic: str) -> AssetKey:
    """The asset of a topic."""
    return AssetKey(["topics", topic])


def stream_key(stream: str) -> AssetKey:
    """The asset of a stream: what its host has committed."""
    return AssetKey(["streams", stream])


def raw_key(topic: str) -> AssetKey:
    """The asset of a topic's archive."""
    return AssetKey(["raw", topic])


def runs_key(pipeline: str) -> AssetKey:
    """The asset of a pipeline's backfills: what it makes of days of its topics' archives."""
    return AssetKey(["runs", pipeline])


def table_key(sink: Sink) -> AssetKey:
    """The asset of a table, by the folder of the warehouse that it is in and its name."""
    return AssetKey([folder_of(sink), sink.table])


def topics_of(plan: Plan) -> tuple[str, ...]:
    """The topics that a pipeline reads, in its own order."""
    return tuple(source.origin.topic for source in plan.sources if isinstance(source.origin, Topic))


def sinks_of(plan: Plan) -> Iterator[Sink]:
    """The tables that a pipeline writes, in its own order."""
    for stage in plan.stages:
        yield from stage.sinks
