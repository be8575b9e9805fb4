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

from penstock.infra.terraform import failures, prepared
from penstock.infra.terraform.diagnostics import Diagnostic, plain_diagnostics, read_diagnostic
from penstock.infra.terraform.engines import Engine
from penstock.infra.terraform.errors import StalePlanError
from penstock.infra.terraform.events import Event, Progress
from penstock.infra.terraform.plan_reader import read_changes, read_outputs, read_resources, read_secrets
from penstock.infra.terraform.plans import Plan
from penstock.infra.terraform.running import OnEvent, Runner
from penstock.infra.terraform.saved import SavedPlans, fingerprint

_PLAN_ID_LENGTH = 12


@dataclass(frozen=True)
class Limits:
    """How long each step may take, in seconds; `lock` is how long to wait for somebody else's lock.

    `grace` is how long a step that took too long has to stop in order before it is killed.
    """

    prepare: float = 300
    plan: float = 300
    apply: float = 3600
    grace: float = 60
    lock: int = 0


@dataclass(frozen=True)
class Output:
    """An output of the state; its value stays out of its text form."""

    value: Any = field(repr=False)
    sensitive: bool


def _ignore(_event: Event) -> None:
    return


@dataclass(frozen=True)
class Workspace:
    """An environment's folder (`directory`), and a private folder for what running it makes (`work`).

    `backend_file` and `backend` complete the backend of the configuration, as `-backend-config` does.
    `environment` is what Terraform and its providers see; variables are handed over in a file.
    """

    directory: Path
    work: Path
    engine: Engine
    variables: Mapping[str, object] = field(default_factory=dict)
    backend: Mapping[str, str] = field(default_factory=dict)
    backend_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    mirrors: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def plans(self) -> SavedPlans:
        """The plans that were made and not yet applied."""
        return SavedPlans(self.work / "plans")

    def prepare(self) -> None:
        """Fetch modules and providers and open the backend; quick when that was done and nothing changed."""
        self.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._alone():
            if not prepared.is_current(self._runner.data, self._stamp()):
                backend = (f"-backend-config={given}" for given in self._backend())
                arguments = ("init", "-input=false", "-no-color", "-reconfigure", *backend)
                self._runner.text(failures.PREPARE, self.limits.prepare, *arguments)
                prepared.record(self._runner.data, self._stamp())

    def validate(self) -> tuple[Diagnostic, ...]:
        """Check the HCL; warnings come back, errors are raised."""
        self.prepare()
        ended = self._runner.answer(failures.VALIDATE, self.limits.plan, "validate", "-json")
        found = tuple(read_diagnostic(document) for document in json.loads(ended.output)["diagnostics"])
        if ended.code:
            raise self._runner.failure(failures.VALIDATE, found)
        return found

    def plan(self, *, destroy: bool = False, on_event: OnEvent = _ignore) -> Plan:
        """Find out what is to be done, and save it. Nothing is changed, drift is looked for."""
        self.prepare()
        with self._runner.scratch() as scratch:
            draft = scratch / "draft.tfplan"
            arguments = ["plan", "-json", "-input=false", self._lock, f"-out={draft}"]
            arguments += [f"-var-file={self._variables_file(scratch)}", *(["-destroy"] if destroy else [])]
            self._runner.stream(failures.PLAN, self.limits.plan, scratch, on_event, arguments)
            plan = self._shown(draft, destroys=destroy)
            self.plans.keep(draft, plan)
        return plan

    def apply(self, plan: Plan, on_event: OnEvent = _ignore) -> tuple[Progress, ...]:
        """Do what a saved plan says, and return the steps that were done. A plan is used once."""
        self.prepare()
        if plan.engine != str(self.engine):
            raise StalePlanError(
                f"Plan {plan.plan_id} was made by {plan.engine}; {self.engine} cannot apply it. Plan again."
            )
        arguments = ["apply", "-json", "-input=false", self._lock, str(self.plans.file(plan))]
        try:
            with self._runner.scratch() as scratch:
                events = self._runner.stream(failures.APPLY, self.limits.apply, scratch, on_event, arguments)
        finally:
            self.plans.drop(plan)
        return tuple(event for event in events if isinstance(event, Progress))

    def outputs(self) -> Mapping[str, Output]:
        """Read the outputs from the state; empty when nothing was applied."""
        self.prepare()
        documents = json.loads(self._runner.text(failures.READ, self.limits.plan, "output", "-json"))
        return {name: Output(item["value"], item["sensitive"]) for name, item in documents.items()}

    def resources(self) -> tuple[str, ...]:
        """The addresses in the state; empty only where it was read, and nothing is in it or it is not there."""
        self.prepare()
        ended = self._runner.answer(failures.READ, self.limits.plan, "state", "list")
        if ended.code and self._has_state():
            raise self._runner.failure(failures.READ, plain_diagnostics(ended.errors or ended.output))
        return tuple(ended.output.splitlines()) if not ended.code else ()

    def unlock(self, lock_id: str) -> None:
        """Release a lock that was left behind. Only for a lock whose holder certainly is no more."""
        self.prepare()
        self._runner.text(failures.UNLOCK, self.limits.plan, "force-unlock", "-force", lock_id)

    def _has_state(self) -> bool:
        """Whether there is a state: listing one that is not there fails, fetching it succeeds with nothing."""
        return bool(self._runner.text(failures.READ, self.limits.plan, "state", "pull").strip())

    @property
    def _runner(self) -> Runner:
        return Runner(
            self.directory, self.work, self.engine, self.environment, self.mirrors, self.limits.grace
        )

    @property
    def _lock(self) -> str:
        return f"-lock-timeout={self.limits.lock}s"

    def _backend(self) -> list[str]:
        file = [str(self.backend_file)] if self.backend_file else []
        return [*file, *(f"{name}={value}" for name, value in self.backend.items())]

    def _stamp(self) -> str:
        written = [self.backend_file.read_text()] if self.backend_file else []
        how = [str(self.engine), *map(str, self.mirrors), *self._backend(), *written]
        return prepared.stamp(self.directory, self._runner.data, how)

    def _shown(self, draft: Path, *, destroys: bool) -> Plan:
        text = self._runner.text(failures.PLAN, self.limits.plan, "show", "-json", str(draft))
        document = json.loads(text)
        mark = fingerprint(draft)
        secrets = read_secrets(document)
        return Plan(
            plan_id=mark[:_PLAN_ID_LENGTH],
            fingerprint=mark,
            engine=str(self.engine),
            destroys=destroys,
            changes=read_changes(document.get("resource_changes", []), secrets),
            outputs=read_outputs(document.get("output_changes", {})),
            drift=read_changes(document.get("resource_drift", []), secrets),
            resources=read_resources(document["planned_values"].get("root_module", {}), secrets),
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.work / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _variables_file(self, scratch: Path) -> Path:
        path = scratch / "variables.tfvars.json"
        path.write_text(json.dumps(dict(self.variables)))
        return path
