"""Finds where Spark starts to read when a stream has a state but no checkpoint of Spark, as after a replay."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from penstock.engine.batch.intent import partition_name
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import JournalError

METADATA_TIMEOUT_S = 20.0
EARLIEST_OFFSET = -2


def find_initial_offsets(
    checkpoint: Path, last_outcome: BatchOutcome, topics: Sequence[str], client_config: Mapping[str, str]
) -> str | None:
    """Return the end offsets of a state as Spark's `startingOffsets`; None when Spark's checkpoint has offsets.

    Raises JournalError when the checkpoint is missing but the state was built from it.
    """
    if any((checkpoint / "offsets").glob("[0-9]*")):
        return None
    if last_outcome.spark_batch is not None:
        fix = "`penstock stream repair NAME`, with the name of the stream, shows how it can resume"
        raise JournalError(checkpoint, f"is missing, but batch {last_outcome.batch_id} was read by it", fix)
    admin = AdminClient(dict(client_config))
    partitions_by_topic = {
        topic: admin.list_topics(topic, timeout=METADATA_TIMEOUT_S).topics[topic].partitions
        for topic in topics
    }
    return json.dumps(
        {
            topic: {
                str(partition): last_outcome.ends.get(partition_name(topic, partition), EARLIEST_OFFSET)
                for partition in sorted(partitions)
            }
            for topic, partitions in partitions_by_topic.items()
        }
    )
