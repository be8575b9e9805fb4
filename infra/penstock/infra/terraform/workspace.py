"""One environment's folder, driven: prepare, check, plan, apply, read its outputs.

Promised: what is applied is a saved plan and nothing else; each failure is an exception that says where
and why; no value of a variable is on a command line; nothing goes through a shell.
Not promised: that an apply which was killed left no lock; `StateLockedError` says whose lock it is.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.infra.terraform import init_stamp, step_failures
from penstock.infra.terraform.diagnostics import Diagnostic, parse_diagnostic, parse_plain_diagnostics
from penstock.infra.terraform.engines import TerraformEngine
from penstock.infra.terraform.errors import StalePlanError
from penstock.infra.terraform.events import ResourceProgress, TerraformEvent
from penstock.infra.terraform.plan_parser import (
    find_sensitive_values,
    parse_output_changes,
    parse_resource_changes,
    parse_resources,
)
from penstock.infra.terraform.plans import TerraformPlan
from penstock.infra.terraform.provider_hashes import check_provider_hashes
from penstock.infra.terraform.runner import EventCallback, TerraformRunner
from penstock.infra.terraform.saved_plans import SavedPlans, plan_fingerprint

_PLAN_ID_LENGTH = 12


@dataclass(frozen=True)
class TerraformTimeouts:
    """The timeout of each step, in seconds; `lock_timeout_s` is how long to wait for a lock of another process.

    `grace_s` is how long a step may take to stop after its timeout before it is killed.
    """

    prepare_timeout_s: float = 300
    plan_timeout_s: float = 300
    apply_timeout_s: float = 3600
    grace_s: float = 60
    lock_timeout_s: int = 0


@dataclass(frozen=True)
class TerraformOutput:
    """An output of the state; `repr` hides its value."""

    value: Any = field(repr=False)
    is_sensitive: bool


def _ignore_event(_event: TerraformEvent) -> None:
    return


@dataclass(frozen=True)
class TerraformWorkspace:
    """An environment's folder (`directory`), and a private folder for what runs write (`work_directory`).

    `backend_file` and `backend_options` complete the backend of the configuration, as `-backend-config` does.
    `environment` has the variables that Terraform and its providers see; `variables` are passed in a file.
    """

    directory: Path
    work_directory: Path
    engine: TerraformEngine
    variables: Mapping[str, object] = field(default_factory=dict)
    backend_options: Mapping[str, str] = field(default_factory=dict)
    backend_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    mirrors: tuple[Path, ...] = ()
    timeouts: TerraformTimeouts = field(default_factory=TerraformTimeouts)

    @property
    def saved_plans(self) -> SavedPlans:
        """The plans that are not applied yet."""
        return SavedPlans(self.work_directory / "plans")

    def prepare(self) -> None:
        """Download modules and providers and open the backend; fast if nothing changed since.

        Raises ProviderHashError for a provider that is not the released package.
        """
        self.work_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock_workspace():
            if not init_stamp.is_stamp_current(self._runner.data_directory, self._compute_stamp()):
                backend = (f"-backend-config={argument}" for argument in self._backend_arguments())
                arguments = ("init", "-input=false", "-no-color", "-reconfigure", *backend)
                self._runner.run_for_text(
                    step_failures.PREPARE_STEP, self.timeouts.prepare_timeout_s, *arguments
                )
                check_provider_hashes(self.directory)
                init_stamp.write_stamp(self._runner.data_directory, self._compute_stamp())

    def validate(self) -> tuple[Diagnostic, ...]:
        """Validate the HCL; return warnings, raise errors."""
        self.prepare()
        result = self._runner.run_for_result(
            step_failures.VALIDATE_STEP, self.timeouts.plan_timeout_s, "validate", "-json"
        )
        diagnostics = tuple(
            parse_diagnostic(document) for document in json.loads(result.stdout)["diagnostics"]
        )
        if result.exit_code:
            raise self._runner.failure_of(step_failures.VALIDATE_STEP, diagnostics)
        return diagnostics

    def plan(self, *, destroy: bool = False, on_event: EventCallback = _ignore_event) -> TerraformPlan:
        """Compute and save a plan, including drift. Changes nothing."""
        self.prepare()
        with self._runner.scratch_directory() as scratch:
            draft = scratch / "draft.tfplan"
            arguments = ["plan", "-json", "-input=false", self._lock_option, f"-out={draft}"]
            arguments += [
                f"-var-file={self._write_variables_file(scratch)}",
                *(["-destroy"] if destroy else []),
            ]
            self._runner.run_for_events(
                step_failures.PLAN_STEP, self.timeouts.plan_timeout_s, scratch, on_event, arguments
            )
            plan = self._read_plan(draft, destroys=destroy)
            self.saved_plans.save(draft, plan)
        return plan

    def apply(
        self, plan: TerraformPlan, on_event: EventCallback = _ignore_event
    ) -> tuple[ResourceProgress, ...]:
        """Apply a saved plan, and return its steps. A plan is used once."""
        self.prepare()
        if plan.engine != str(self.engine):
            raise StalePlanError(
                f"Plan {plan.plan_id} was made by {plan.engine}; {self.engine} cannot apply it. Plan again."
            )
        arguments = [
            "apply",
            "-json",
            "-input=false",
            self._lock_option,
            str(self.saved_plans.verified_plan_file(plan)),
        ]
        try:
            with self._runner.scratch_directory() as scratch:
                events = self._runner.run_for_events(
                    step_failures.APPLY_STEP, self.timeouts.apply_timeout_s, scratch, on_event, arguments
                )
        finally:
            self.saved_plans.delete(plan)
        return tuple(event for event in events if isinstance(event, ResourceProgress))

    def read_outputs(self) -> Mapping[str, TerraformOutput]:
        """Read the outputs from the state; empty when nothing was applied."""
        self.prepare()
        documents = json.loads(
            self._runner.run_for_text(
                step_failures.READ_STATE_STEP, self.timeouts.plan_timeout_s, "output", "-json"
            )
        )
        return {name: TerraformOutput(item["value"], item["sensitive"]) for name, item in documents.items()}

    def list_resources(self) -> tuple[str, ...]:
        """Return the addresses in the state; empty only if the state was read or does not exist."""
        self.prepare()
        result = self._runner.run_for_result(
            step_failures.READ_STATE_STEP, self.timeouts.plan_timeout_s, "state", "list"
        )
        if result.exit_code and self._has_state():
            raise self._runner.failure_of(
                step_failures.READ_STATE_STEP, parse_plain_diagnostics(result.stderr or result.stdout)
            )
        return tuple(result.stdout.splitlines()) if not result.exit_code else ()

    def unlock(self, lock_id: str) -> None:
        """Release a leftover lock. Use it only if its holder no longer runs."""
        self.prepare()
        self._runner.run_for_text(
            step_failures.UNLOCK_STEP, self.timeouts.plan_timeout_s, "force-unlock", "-force", lock_id
        )

    def _has_state(self) -> bool:
        """Return whether a state exists: listing a missing one fails, pulling it succeeds and is empty."""
        return bool(
            self._runner.run_for_text(
                step_failures.READ_STATE_STEP, self.timeouts.plan_timeout_s, "state", "pull"
            ).strip()
        )

    @property
    def _runner(self) -> TerraformRunner:
        return TerraformRunner(
            self.directory,
            self.work_directory,
            self.engine,
            self.environment,
            self.mirrors,
            self.timeouts.grace_s,
        )

    @property
    def _lock_option(self) -> str:
        return f"-lock-timeout={self.timeouts.lock_timeout_s}s"

    def _backend_arguments(self) -> list[str]:
        file_arguments = [str(self.backend_file)] if self.backend_file else []
        return [*file_arguments, *(f"{name}={value}" for name, value in self.backend_options.items())]

    def _compute_stamp(self) -> str:
        backend_text = [self.backend_file.read_text()] if self.backend_file else []
        options = [str(self.engine), *map(str, self.mirrors), *self._backend_arguments(), *backend_text]
        return init_stamp.compute_stamp(self.directory, self._runner.data_directory, options)

    def _read_plan(self, draft: Path, *, destroys: bool) -> TerraformPlan:
        text = self._runner.run_for_text(
            step_failures.PLAN_STEP, self.timeouts.plan_timeout_s, "show", "-json", str(draft)
        )
        document = json.loads(text)
        plan_hash = plan_fingerprint(draft)
        secrets = find_sensitive_values(document)
        return TerraformPlan(
            plan_id=plan_hash[:_PLAN_ID_LENGTH],
            fingerprint=plan_hash,
            engine=str(self.engine),
            destroys=destroys,
            changes=parse_resource_changes(document.get("resource_changes", []), secrets),
            outputs=parse_output_changes(document.get("output_changes", {})),
            drift=parse_resource_changes(document.get("resource_drift", []), secrets),
            resources=parse_resources(document["planned_values"].get("root_module", {}), secrets),
        )

    @contextmanager
    def _lock_workspace(self) -> Iterator[None]:
        with (self.work_directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write_variables_file(self, scratch: Path) -> Path:
        path = scratch / "variables.tfvars.json"
        path.write_text(json.dumps(dict(self.variables)))
        return path
