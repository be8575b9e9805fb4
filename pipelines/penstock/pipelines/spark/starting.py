"""Where Spark begins to read for a stream that has a state, and no checkpoint of Spark's: after a replay."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from penstock.pipelines.batch.intent import partition_name
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import JournalError

PATIENCE_S = 20.0
FROM_THE_START = -2


def starting_offsets(
    checkpoint: Path, last: Outcome, topics: Sequence[str], client: Mapping[str, str]
) -> str | None:
    """Return the ends of a state in Spark's words; None where a checkpoint says where to begin."""
    if any((checkpoint / "offsets").glob("[0-9]*")):
        return None
    if last.spark_batch is not None:
        fix = "Restore the checkpoint that belongs to this journal, or replay the stream"
        raise JournalError(checkpoint, f"it is gone, and batch {last.batch_id} was read by it", fix)
    admin = AdminClient(dict(client))
    known = {topic: admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions for topic in topics}
    return json.dumps(
        {
            topic: {
                str(number): last.ends.get(partition_name(topic, number), FROM_THE_START)
                for number in sorted(partitions)
            }
            for topic, partitions in known.items()
        }
    )
