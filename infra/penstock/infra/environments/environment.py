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
from penstock.infra.environments.outputs import EnvironmentOutputs, parse_outputs
from penstock.infra.terraform import ResourceChange, ResourceProgress, TerraformPlan, TerraformWorkspace
from penstock.infra.terraform.runner import EventCallback

_APPROVAL_FILE_NAME = "approved.json"


@dataclass(frozen=True)
class PlanApproval:
    """The approver of a plan, and the time."""

    plan_id: str
    approver: str
    approved_at: datetime


@dataclass(frozen=True)
class EnvironmentDrift:
    """The differences from the applied state: none, or the changes that would remove them."""

    environment: str
    changes: tuple[ResourceChange, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)


def _ignore_event(_event: object) -> None:
    return


@dataclass(frozen=True)
class Environment:
    """An environment by its name, driven through its workspace."""

    name: str
    workspace: TerraformWorkspace

    def plan(self, *, destroy: bool = False, on_event: EventCallback = _ignore_event) -> TerraformPlan:
        """Plan, and keep the plan under its id until it is applied."""
        return self.workspace.plan(destroy=destroy, on_event=on_event)

    def load_plan(self, plan_id: str) -> TerraformPlan:
        """Return a saved plan."""
        return self.workspace.saved_plans.load(plan_id)

    def load_plans(self) -> Iterator[TerraformPlan]:
        """Return the plans that are not applied yet."""
        yield from self.workspace.saved_plans.load_all()

    def approve(self, plan_id: str, approver: str, approved_at: datetime) -> PlanApproval:
        """Record the approval of a plan."""
        plan = self.load_plan(plan_id)
        approval = PlanApproval(plan.plan_id, approver, approved_at)
        self._approval_file(plan).write_bytes(msgspec.json.encode(approval))
        return approval

    def find_approval(self, plan_id: str) -> PlanApproval | None:
        """Return the approval of a plan; None if there is none."""
        path = self._approval_file(self.load_plan(plan_id))
        return msgspec.json.decode(path.read_bytes(), type=PlanApproval) if path.exists() else None

    def apply(
        self, plan_id: str, *, require_approval: bool = False, on_event: EventCallback = _ignore_event
    ) -> tuple[ResourceProgress, ...]:
        """Apply a plan that was shown; with `require_approval`, only an approved one."""
        plan = self.load_plan(plan_id)
        if require_approval and self.find_approval(plan_id) is None:
            raise NotApprovedError(
                f"Plan {plan_id} of {self.name} has no approval ({plan}). "
                "Review it, approve it, and apply again."
            )
        return self.workspace.apply(plan, on_event=on_event)

    def drop_plan(self, plan_id: str) -> None:
        """Discard a plan."""
        self.workspace.saved_plans.delete(self.load_plan(plan_id))

    def find_drift(self) -> EnvironmentDrift:
        """Compare the environment with its state, without saving a plan."""
        if not self.workspace.list_resources():
            raise NotAppliedError(
                f"{self.name} was not applied, so nothing can differ from it. Apply it first."
            )
        plan = self.plan()
        self.workspace.saved_plans.delete(plan)
        changes = (*(change for change in plan.changes if change.has_effect), *plan.drift)
        return EnvironmentDrift(self.name, tuple({change.address: change for change in changes}.values()))

    def read_outputs(self) -> EnvironmentOutputs:
        """Return the outputs that the platform needs."""
        outputs = self.workspace.read_outputs()
        if not outputs:
            raise NotAppliedError(f"{self.name} has no outputs, as it was not applied. Apply it first.")
        return parse_outputs(outputs)

    def _approval_file(self, plan: TerraformPlan) -> Path:
        return self.workspace.saved_plans.directory / plan.plan_id / _APPROVAL_FILE_NAME
