"""Where Spark begins to read for a stream that has a state, and no checkpoint of Spark's: after a replay."""

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
    """Return the ends of a state in Spark's words; None where a checkpoint says where to begin."""
    if any((checkpoint / "offsets").glob("[0-9]*")):
        return None
    if last_outcome.spark_batch is not None:
        fix = "Restore the checkpoint that belongs to this journal, or replay the stream"
        raise JournalError(checkpoint, f"it is gone, and batch {last_outcome.batch_id} was read by it", fix)
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
