"""The stream host as spark-submit runs it: `application.py WORD`, until the file WORD is gone.

Of Spark it is told what the launcher decided; of the platform what the variables say, here or on the cluster.
"""

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the host, and drain its streams when the word is taken back."""
    from penstock.platform.host.compose import run_host
    from penstock.platform.launch.word import when_taken_back
    from penstock.platform.logs import write_logs
    from penstock.platform.settings import load_settings

    settings = load_settings().settings
    write_logs(settings.host.log_format)
    when_taken_back(Path(sys.argv[1]), _ask_to_end)
    run_host(settings)


def _ask_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
