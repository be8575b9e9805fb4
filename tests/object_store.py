"""An object store in its own process: moto, with the conditional requests of S3.

`python -m tests.object_store` prints its address and serves until its standard input ends. It cannot run in the
process of a test: Delta's library waits for it without releasing the GIL.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from urllib.request import Request, urlopen

from tests.patience import PATIENCE_S

from penstock.engine.storage import ObjectStoreConfig

TEST_BUCKET = "tables"
TEST_REGION = "us-east-1"


@contextmanager
def run_object_store(log: IO[str] | None = None) -> Iterator[ObjectStoreConfig]:
    """Run a store with one empty bucket; `log` gets a line for each request."""
    command = [sys.executable, "-m", "tests.object_store"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log or subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            store = ObjectStoreConfig(process.stdout.readline().strip(), TEST_REGION)
            urlopen(Request(f"{store.endpoint}/{TEST_BUCKET}", method="PUT"), timeout=PATIENCE_S).close()
            yield store
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)


def main() -> None:
    """Serve."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
