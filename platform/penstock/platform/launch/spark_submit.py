"""A stream host that spark-submit runs: submit it, request its stop, wait for its end."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.infra.jars import ensure_jars
from penstock.infra.local.private_files import write_private_file
from penstock.platform.launch.run_token import hold_run_token
from penstock.platform.launch.submission import build_submission
from penstock.platform.settings import Settings


def run_spark_submit(settings: Settings) -> int:
    """Run the host by spark-submit until SIGTERM or SIGINT; return the exit code of spark-submit.

    The host then drains its streams, wherever it runs, because its run token is gone. If the launcher is killed,
    the next launcher with the same home folder stops the host.
    """
    spark_directory = settings.home / "spark"
    ensure_jars(settings.jars, settings.spark_jar_sets)
    with hold_run_token(spark_directory / "submitted") as token_file, _revoke_on_signals(token_file):
        properties_file = spark_directory / "submit.properties"
        spark_submission = build_submission(settings, properties_file, token_file)
        write_private_file(properties_file, spark_submission.properties)
        return _run_process(spark_submission.command, {**os.environ, **spark_submission.environment})


def _run_process(command: Sequence[str], environment: dict[str, str]) -> int:
    # A new session: Ctrl-C in a terminal reaches only the launcher, and does not end Spark in the middle of a
    # batch.
    return subprocess.run(command, env=environment, check=False, start_new_session=True).returncode


@contextmanager
def _revoke_on_signals(token_file: Path) -> Iterator[None]:
    def revoke_token(*_: object) -> None:
        token_file.unlink(missing_ok=True)

    previous_handlers = {
        signal_number: signal.signal(signal_number, revoke_token)
        for signal_number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for signal_number, handler in previous_handlers.items():
            signal.signal(signal_number, handler)
