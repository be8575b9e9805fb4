"""One environment: what may be done with it, and in which order.

Promised: what is applied was planned, shown and (where that is asked for) approved by somebody; a plan is
used once. Not promised: that a plan still fits when it is applied; then it is refused as stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from penstock.infra.environments.errors import NotAppliedError, NotApprovedError
from penstock.infra.environments.outputs import EnvironmentOutputs, read_outputs
from penstock.infra.terraform import Plan, Progress, ResourceChange, Workspace
from penstock.infra.terraform.running import OnEvent

_APPROVAL = "approved.json"


@dataclass(frozen=True)
class Approval:
    """Who said that a plan may be applied, and when."""

    plan_id: str
    by: str
    at: datetime


@dataclass(frozen=True)
class Drift:
    """What differs from what was applied: nothing, or the changes that would mend it."""

    environment: str
    changes: tuple[ResourceChange, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)


def _ignore(_event: object) -> None:
    return


@dataclass(frozen=True)
class Environment:
    """An environment by its name, driven through its workspace."""

    name: str
    workspace: Workspace

    def plan(self, *, destroy: bool = False, on_event: OnEvent = _ignore) -> Plan:
        """Plan, and keep the plan under its id until it is applied."""
        return self.workspace.plan(destroy=destroy, on_event=on_event)

    def shown(self, plan_id: str) -> Plan:
        """A plan that was made earlier."""
        return self.workspace.plans.shown(plan_id)

    def plans(self) -> Iterator[Plan]:
        """The plans that wait to be applied."""
        yield from self.workspace.plans.all()

    def approve(self, plan_id: str, by: str, at: datetime) -> Approval:
        """Write down that somebody approves of a plan."""
        plan = self.shown(plan_id)
        approval = Approval(plan.plan_id, by, at)
        self._approval_file(plan).write_bytes(msgspec.json.encode(approval))
        return approval

    def approval(self, plan_id: str) -> Approval | None:
        """Who approved of a plan; None while nobody has."""
        path = self._approval_file(self.shown(plan_id))
        return msgspec.json.decode(path.read_bytes(), type=Approval) if path.exists() else None

    def apply(
        self, plan_id: str, *, approved: bool = False, on_event: OnEvent = _ignore
    ) -> tuple[Progress, ...]:
        """Apply a plan that was shown. With `approved`, only one that somebody has approved of."""
        plan = self.shown(plan_id)
        if approved and self.approval(plan_id) is None:
            raise NotApprovedError(
                f"Nobody has approved of plan {plan_id} of {self.name} ({plan}). "
                "Look at it, approve it, and apply again."
            )
        return self.workspace.apply(plan, on_event=on_event)

    def drop(self, plan_id: str) -> None:
        """Forget a plan that will not be applied."""
        self.workspace.plans.drop(self.shown(plan_id))

    def drift(self) -> Drift:
        """Compare what is there with what was applied, and keep no plan of it."""
        if not self.workspace.resources():
            raise NotAppliedError(
                f"{self.name} was not applied, so nothing can differ from it. Apply it first."
            )
        plan = self.plan()
        self.workspace.plans.drop(plan)
        changes = (*(change for change in plan.changes if change.changes_something), *plan.drift)
        return Drift(self.name, tuple({change.address: change for change in changes}.values()))

    def outputs(self) -> EnvironmentOutputs:
        """What the platform needs to know of it."""
        outputs = self.workspace.outputs()
        if not outputs:
            raise NotAppliedError(f"{self.name} has no outputs, as it was not applied. Apply it first.")
        return read_outputs(outputs)

    def _approval_file(self, plan: Plan) -> Path:
        return self.workspace.plans.directory / plan.plan_id / _APPROVAL
