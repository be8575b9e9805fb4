"""Opens the topics of a stream as a streaming frame of Spark."""

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.kafka.consumer_options import CONSUMER_OPTIONS
from penstock.engine.spark.kafka.initial_offsets import find_initial_offsets
from penstock.engine.spark.stream_config import StreamConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_topic_stream(
    session: "SparkSession",
    plan: Plan,
    config: StreamConfig,
    checkpoint: Path,
    last_outcome: BatchOutcome | None,
) -> "DataFrame":
    """Return the records of the plan's topics, from Spark's checkpoint or from where the last outcome ended."""
    for source in plan.sources:
        if not isinstance(source.origin, TopicOrigin):
            raise DefinitionError(
                "read", f"{source.origin}", "A live stream reads topics; `penstock run` reads stored files"
            )
    topics = [topic_of(source) for source in plan.sources]
    initial_offsets = (
        None
        if last_outcome is None
        else find_initial_offsets(checkpoint, last_outcome, topics, config.broker.client_config)
    )
    options = {
        "kafka.bootstrap.servers": config.broker.bootstrap,
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(config.max_records_per_batch),
        **CONSUMER_OPTIONS,
        **config.broker.spark_options,
        **({} if initial_offsets is None else {"startingOffsets": initial_offsets}),
    }
    return session.readStream.format("kafka").options(**options).load()
