"""A stream host that spark-submit begins: submitted, asked to end, waited for."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.infra.jars import ensure_jars
from penstock.infra.local.private import write_private
from penstock.platform.launch.submission import submission
from penstock.platform.launch.word import given
from penstock.platform.settings import Settings


def run_submitted(settings: Settings) -> int:
    """Run the host by spark-submit until SIGTERM or SIGINT; return what spark-submit ended with.

    It drains its streams then, wherever it runs: it finds that its word is gone. A host whose launcher is killed is
    ended by the next launcher with the same home folder.
    """
    folder = settings.home / "spark"
    ensure_jars(settings.jars, settings.spark_jar_sets)
    with given(folder / "submitted") as word, _taken_back_by_signals(word):
        file = folder / "submit.properties"
        how = submission(settings, file, word)
        write_private(file, how.properties)
        return _run(how.command, {**os.environ, **how.environment})


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    # A session of its own: Ctrl-C in a terminal is for the launcher, and would end Spark in the midst of a batch.
    return subprocess.run(command, env=environment, check=False, start_new_session=True).returncode


@contextmanager
def _taken_back_by_signals(word: Path) -> Iterator[None]:
    def end(*_: object) -> None:
        word.unlink(missing_ok=True)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, how in before.items():
            signal.signal(each, how)
