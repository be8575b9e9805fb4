"""A host process of one stream that blocks in the middle of its first file of rows.

Arguments: a folder, the bootstrap servers, a topic, and the jars of Spark. It creates the file `waiting` in the
folder when it blocks, and continues when the file `gate` exists.
"""

import logging
import sys
import time
from pathlib import Path

from tests.pipelines.engine.batch.interrupted_writer import InterruptedWriter
from tests.pipelines.engine.spark.test_live_stream import build_plan

from penstock.core.clock import now_ms
from penstock.core.kafka_client import BrokerAccess
from penstock.core.settings import DurationMs
from penstock.engine.host.host_process import HostConfig, run_host_process
from penstock.engine.host_settings import HostSettings
from penstock.engine.spark.session import SparkSessionConfig
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage import file_access
from penstock.infra.java import find_java
from penstock.platform.control import open_control_store
from penstock.stream import fixed

LEASE_MS = 3_000


def main(folder: Path, bootstrap: str, topic: str, *jars: str) -> None:
    """Run until SIGTERM."""

    def block_until_gate() -> None:
        (folder / "waiting").touch()
        while not (folder / "gate").exists():
            time.sleep(0.05)

    file_access.pq = InterruptedWriter(1, block_until_gate)  # type: ignore[assignment]
    spark = SparkSessionConfig(
        [Path(jar) for jar in jars], folder / "spark", driver_memory="512m", java_home=find_java().home
    )
    settings = HostSettings(batch_interval=DurationMs(0), lease_timeout=DurationMs(LEASE_MS))
    stream_config = StreamConfig(BrokerAccess(bootstrap), folder / "warehouse", settings)
    config = HostConfig(spark, folder / "streams", stream_config, name="blocked")
    store = open_control_store(f"sqlite:///{folder}/control.db")
    run_host_process(config, store, lambda _: build_plan(topic, fixed("10 seconds")), now_ms)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main(Path(sys.argv[1]), *sys.argv[2:])
