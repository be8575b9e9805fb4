"""A sink of the user that fails: the reason names its file and line, and the stream is retried as the docs say."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from tests.installed_kinds import installed_kinds
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, run_batches
from tests.pipelines.outside_kinds import SINKS

from penstock.engine.host.error_report import describe_user_traceback, summarize_error
from penstock.engine.host.restart_policy import FailureHistory
from penstock.stream.keyword_registries import SINK_KEYWORDS

MAX_RETRIES = 3
APPLY = "    def apply(self, batch_id, rows):\n        write_text("


@contextmanager
def failing_sink(statement: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[int]:
    """Install a sink that fails with a statement; yield the line of it."""
    assert APPLY in SINKS
    text = SINKS.replace(APPLY, APPLY.replace("write_text(", f"{statement}\n        write_text("))
    line = next(number for number, code in enumerate(text.splitlines(), 1) if code.strip() == statement)
    with installed_kinds(
        folder, patch, SINK_KEYWORDS, {"outside_sinks": text}, json_lines="outside_sinks:json_lines"
    ):
        yield line


@pytest.mark.parametrize(
    ("statement", "error", "is_exhausted"),
    [
        ('raise ValueError("no such account")', "ValueError: no such account", [False, False, True]),
        ('raise ConnectionError("the ledger is away")', "ConnectionError: the ledger is away", [False] * 3),
    ],
)
def test_a_failing_sink_is_named_with_its_line_and_retried_by_the_kind_of_its_error(
    statement: str, error: str, is_exhausted: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason was the bare error: `ValueError: no such account`."""
    with failing_sink(statement, tmp_path, monkeypatch) as line:
        sinks = (import_module("outside_sinks").JsonLines("lines"),)
        plan = replace(PLAN, stages=(replace(PLAN.only_stage, sinks=sinks),))
        with pytest.raises((ValueError, ConnectionError)) as raised:
            run_batches(Bench(plan, tmp_path / "bench"))
    location = f"{tmp_path}/outside_sinks.py:{line}"
    assert summarize_error(raised.value) == f"apply ({location}): {error}"
    traceback = describe_user_traceback(raised.value).splitlines()
    assert f"  {location}, in apply" in traceback
    assert error in traceback
    history, exhausted = FailureHistory(), []
    for attempt in range(3):
        history = history.add_failure(attempt, raised.value)
        exhausted.append(history.is_exhausted(MAX_RETRIES))
    assert exhausted == is_exhausted
