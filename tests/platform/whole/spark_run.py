"""One run of a shipped stream on a Spark of the caller's choice: `python -m tests.platform.whole.spark_run ORDER`.

A Spark context lives as long as its process, so each master needs a process of its own. ORDER is JSON: `master`,
`bootstrap`, `folder`, `jars`, `executor_class_path`, empty for that of the driver, and `records`, how many to read
before the end.
"""

import json
import sys
import threading
from pathlib import Path

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.spark.live_stream import LiveStream
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.engine.spark.stream_config import StreamConfig
from penstock.infra.jars import spark_jars
from penstock.infra.java import find_java
from penstock.pipelines.catalog import load_plan

STREAM = "sensor_minute"
CLOCK = 1_795_000_000_000
"""The clock stands still, so that the output depends only on the batches."""

RECORDS_PER_BATCH = 1_000
READ_TIMEOUT_S = 120.0


class RecordCount:
    """Counts the records read, and lets a thread wait for more."""

    def __init__(self) -> None:
        self.read = 0
        self.changed = threading.Condition()

    def add_outcome(self, outcome: BatchOutcome) -> None:
        with self.changed:
            self.read += sum(account.read for account in outcome.accounts)
            self.changed.notify_all()

    def wait_for(self, records: int, stream: LiveStream) -> None:
        with self.changed:
            self.changed.wait_for(
                lambda: self.read >= records or stream.failure() is not None, READ_TIMEOUT_S
            )
        if failure := stream.failure():
            raise failure
        assert self.read == records, f"{self.read} of {records} records were read"


def main(order: dict[str, str]) -> None:
    folder = Path(order["folder"])
    session = open_spark_session(
        SparkSessionConfig(
            jars=spark_jars(Path(order["jars"])),
            directory=folder / "spark",
            master=order["master"],
            driver_memory="1g",
            java_home=find_java().home,
            extra_settings={
                "spark.executor.memory": "512m",
                **(
                    {"spark.executor.extraClassPath": order["executor_class_path"]}
                    if order["executor_class_path"]
                    else {}
                ),
            },
        )
    )
    count = RecordCount()
    config = StreamConfig(
        BrokerAccess(order["bootstrap"]), folder / "warehouse", max_records_per_batch=RECORDS_PER_BATCH
    )
    stream = LiveStream(
        load_plan(STREAM),
        session,
        folder / "stream",
        config,
        WriteFence(STREAM, 1, lambda: True),
        count.add_outcome,
        lambda: CLOCK,
    )
    stream.start()
    try:
        count.wait_for(int(order["records"]), stream)
    finally:
        stream.drain()
        session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
