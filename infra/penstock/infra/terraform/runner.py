"""Running one Terraform command in one folder, with failures as exceptions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.terraform.child_process import ChildCommand, ChildResult, run_child
from penstock.infra.terraform.diagnostics import Diagnostic, parse_plain_diagnostics
from penstock.infra.terraform.engines import TerraformEngine
from penstock.infra.terraform.errors import TerraformError, TerraformTimeoutError
from penstock.infra.terraform.events import TerraformEvent, find_unfinished_resources, parse_event
from penstock.infra.terraform.process_environment import build_terraform_environment
from penstock.infra.terraform.step_failures import TerraformStep, classify_failure

EventCallback = Callable[[TerraformEvent], None]


@dataclass(frozen=True)
class TerraformRunner:
    """What all commands on one environment's folder share."""

    directory: Path
    work_directory: Path
    engine: TerraformEngine
    environment: Mapping[str, str]
    mirrors: tuple[Path, ...]
    grace_s: float

    @property
    def data_directory(self) -> Path:
        """Where Terraform keeps what it fetched; apart from a folder that is used by hand."""
        return self.work_directory / "data"

    @contextmanager
    def scratch_directory(self) -> Iterator[Path]:
        """Yield a private folder for the files of one run, removed at the end."""
        runs = self.work_directory / "runs"
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=runs) as folder:
            yield Path(folder)

    def run_for_text(self, step: TerraformStep, timeout_s: float, *arguments: str) -> str:
        """Run a command and return its output."""
        with self.scratch_directory() as scratch:
            result = self._run_step(step, timeout_s, scratch, arguments, lambda _line: None, ())
        if result.exit_code:
            raise self.failure_of(step, parse_plain_diagnostics(result.stderr or result.stdout))
        return result.stdout

    def run_for_result(self, step: TerraformStep, timeout_s: float, *arguments: str) -> ChildResult:
        """Run a command whose exit code is part of its result."""
        with self.scratch_directory() as scratch:
            return self._run_step(step, timeout_s, scratch, arguments, lambda _line: None, ())

    def run_for_events(
        self,
        step: TerraformStep,
        timeout_s: float,
        scratch: Path,
        on_event: EventCallback,
        arguments: Sequence[str],
    ) -> tuple[TerraformEvent, ...]:
        """Run a command that writes events, and pass each on when it arrives."""
        events: list[TerraformEvent] = []

        def on_line(line: str) -> None:
            event = parse_event(line)
            if event is not None:
                events.append(event)
                on_event(event)

        result = self._run_step(step, timeout_s, scratch, arguments, on_line, events)
        if result.exit_code:
            diagnostics = [event for event in events if isinstance(event, Diagnostic)]
            raise self.failure_of(step, diagnostics or parse_plain_diagnostics(result.stderr))
        return tuple(events)

    def failure_of(self, step: TerraformStep, diagnostics: Sequence[Diagnostic]) -> TerraformError:
        """Return the exception for a failed step in this folder."""
        return classify_failure(step, self.directory.name, diagnostics)

    def _run_step(
        self,
        step: TerraformStep,
        timeout_s: float,
        scratch: Path,
        arguments: Sequence[str],
        on_line: Callable[[str], None],
        events: Sequence[TerraformEvent],
    ) -> ChildResult:
        command = ChildCommand(
            arguments=(*self.engine.command, *arguments),
            directory=self.directory,
            environment=build_terraform_environment(
                self.environment, self.work_directory, self.data_directory, self.mirrors
            ),
            stdout_file=scratch / "out",
            stderr_file=scratch / "err",
            timeout_s=timeout_s,
            grace_s=self.grace_s,
        )
        unfinished_addresses: list[str] = []
        result = run_child(
            command, on_line, lambda: unfinished_addresses.extend(find_unfinished_resources(events))
        )
        if result.has_timed_out:
            operation = f"{step.name} {self.directory.name}"
            raise TerraformTimeoutError(operation, timeout_s, unfinished_addresses, result.was_killed)
        return result
