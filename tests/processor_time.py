"""Prints how long each test file takes and how much processor time it uses: `pytest -n 0 -p tests.processor_time`.

A file that takes much longer than its processor time waits, on a machine that does nothing else. The processor time
is that of pytest and of its descendants, except those that end between two tests or detach, as a whole stack does.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

SHOWN_FILES = 40


@dataclass
class FileTimes:
    """The seconds that the tests of a file took, with their fixtures."""

    elapsed_s: float = 0.0
    processor_s: float = 0.0


TIMES_BY_FILE: defaultdict[str, FileTimes] = defaultdict(FileTimes)


def read_processor_time() -> float:
    """Return the processor time of this process, of its descendants, and of those that have ended."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue  # it has ended
        total += times.user + times.system + times.children_user + times.children_system
    return float(total)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    started_s, processor_s = time.perf_counter(), read_processor_time()
    try:
        return (yield)
    finally:
        times = TIMES_BY_FILE[item.location[0]]
        times.elapsed_s += time.perf_counter() - started_s
        times.processor_s += read_processor_time() - processor_s


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_sep("=", "processor time by file")
    longest_first = sorted(TIMES_BY_FILE.items(), key=lambda entry: -entry[1].elapsed_s)
    for path, times in longest_first[:SHOWN_FILES]:
        terminalreporter.write_line(f"{times.elapsed_s:7.1f} s {times.processor_s:7.1f} s  {path}")
    total = FileTimes(
        sum(times.elapsed_s for times in TIMES_BY_FILE.values()),
        sum(times.processor_s for times in TIMES_BY_FILE.values()),
    )
    terminalreporter.write_line(f"{total.elapsed_s:7.1f} s {total.processor_s:7.1f} s  in all")
