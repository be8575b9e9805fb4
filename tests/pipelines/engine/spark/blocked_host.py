"""A host of one stream, as a process of its own that waits at a gate in the middle of the first file of rows.

Run it with a folder, the address of a broker, a topic, and the jars of Spark. In the folder it says by `waiting`
that it waits, and looks for `gate`.
"""

import logging
import sys
import time
from pathlib import Path

from tests.pipelines.engine.batch.interrupted_writer import HalfAFile
from tests.pipelines.engine.spark.test_live_stream import plan_over

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

    def wait() -> None:
        (folder / "waiting").touch()
        while not (folder / "gate").exists():
            time.sleep(0.05)

    file_access.pq = HalfAFile(1, wait)  # type: ignore[assignment]
    spark = SparkSessionConfig(
        [Path(jar) for jar in jars], folder / "spark", driver_memory="512m", java_home=find_java().home
    )
    settings = HostSettings(batch_interval=DurationMs(0), lease_timeout=DurationMs(LEASE_MS))
    stream_config = StreamConfig(BrokerAccess(bootstrap), folder / "warehouse", settings)
    config = HostConfig(spark, folder / "streams", stream_config, name="sleeper")
    store = open_control_store(f"sqlite:///{folder}/control.db")
    run_host_process(config, store, lambda _: plan_over(topic, fixed("10 seconds")), now_ms)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main(Path(sys.argv[1]), *sys.argv[2:])
