"""Running one Terraform command in one folder: its surroundings, its files, its failure as an exception."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.terraform.child import Command, Ended, run
from penstock.infra.terraform.diagnostics import Diagnostic, plain_diagnostics
from penstock.infra.terraform.engines import Engine
from penstock.infra.terraform.errors import TerraformError, TimeLimitError
from penstock.infra.terraform.events import Event, read_event, unfinished
from penstock.infra.terraform.failures import Doing, failure
from penstock.infra.terraform.surroundings import surroundings

OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Runner:
    """What every command on one environment's folder has in common."""

    directory: Path
    work: Path
    engine: Engine
    environment: Mapping[str, str]
    mirrors: tuple[Path, ...]
    grace_seconds: float

    @property
    def data(self) -> Path:
        """Where Terraform keeps what it fetched; apart from a folder that is used by hand."""
        return self.work / "data"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for one run's files, its owner's alone, gone at the end whatever they hold."""
        runs = self.work / "runs"
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=runs) as folder:
            yield Path(folder)

    def text(self, doing: Doing, seconds: float, *arguments: str) -> str:
        """Run a command that answers with text, and return its answer."""
        with self.scratch() as scratch:
            ended = self._run(doing, seconds, scratch, arguments, lambda _line: None, ())
        if ended.code:
            raise self.failure(doing, plain_diagnostics(ended.errors or ended.output))
        return ended.output

    def answer(self, doing: Doing, seconds: float, *arguments: str) -> Ended:
        """Run a command whose exit code is part of its answer."""
        with self.scratch() as scratch:
            return self._run(doing, seconds, scratch, arguments, lambda _line: None, ())

    def stream(
        self, doing: Doing, seconds: float, scratch: Path, on_event: OnEvent, arguments: Sequence[str]
    ) -> tuple[Event, ...]:
        """Run a command that answers with events, and hand on each as it comes."""
        events: list[Event] = []

        def on_line(line: str) -> None:
            event = read_event(line)
            if event is not None:
                events.append(event)
                on_event(event)

        ended = self._run(doing, seconds, scratch, arguments, on_line, events)
        if ended.code:
            told = [event for event in events if isinstance(event, Diagnostic)]
            raise self.failure(doing, told or plain_diagnostics(ended.errors))
        return tuple(events)

    def failure(self, doing: Doing, diagnostics: Sequence[Diagnostic]) -> TerraformError:
        """The exception for a step that failed in this folder."""
        return failure(doing, self.directory.name, diagnostics)

    def _run(
        self,
        doing: Doing,
        seconds: float,
        scratch: Path,
        arguments: Sequence[str],
        on_line: Callable[[str], None],
        seen: Sequence[Event],
    ) -> Ended:
        command = Command(
            arguments=(*self.engine.command, *arguments),
            directory=self.directory,
            environment=surroundings(self.environment, self.work, self.data, self.mirrors),
            output=scratch / "out",
            errors=scratch / "err",
            limit_seconds=seconds,
            grace_seconds=self.grace_seconds,
        )
        at_work: list[str] = []
        ended = run(command, on_line, lambda: at_work.extend(unfinished(seen)))
        if ended.timed_out:
            what = f"{doing.name} {self.directory.name}"
            raise TimeLimitError(what, seconds, at_work, ended.killed)
        return ended
