"""The stream host as spark-submit runs it: `application.py TOKEN_FILE`, until that file is gone.

The launcher decides Spark's properties. The platform's settings come from environment variables, here or on the
cluster.
"""

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the host, and drain its streams when the launcher removes the token file."""
    from penstock.platform.host.composition import run_host
    from penstock.platform.launch.run_token import watch_run_token
    from penstock.platform.logging_setup import configure_logging
    from penstock.platform.settings import load_settings

    settings = load_settings().settings
    configure_logging(settings.host.log_format)
    watch_run_token(Path(sys.argv[1]), _request_stop)
    run_host(settings)


def _request_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
