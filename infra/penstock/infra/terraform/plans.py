"""A plan as plain data: what would change, where, from what to what. Sensitive values are masked here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SENSITIVE_MASK = "(sensitive)"
UNKNOWN_MASK = "(known after apply)"


class PlanAction(StrEnum):
    """The action of a plan on one resource or output."""

    NO_OP = "no-op"
    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    FORGET = "forget"


@dataclass(frozen=True)
class AttributeChange:
    """One attribute, by its path in the resource, before and after; sensitive values are masked."""

    path: str
    before: object
    after: object


@dataclass(frozen=True)
class ResourceChange:
    """What happens to one resource, and why it must be replaced, if it must."""

    address: str
    kind: str
    action: PlanAction
    values: tuple[AttributeChange, ...] = ()
    reason: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether the change affects anything outside Terraform."""
        return self.action not in (PlanAction.NO_OP, PlanAction.READ)


@dataclass(frozen=True)
class PlannedResource:
    """A resource after the plan is applied, without sensitive and unknown values."""

    address: str
    kind: str
    values: dict[str, Any]


@dataclass(frozen=True)
class OutputChange:
    """The change of one output, without its value."""

    name: str
    action: PlanAction


@dataclass(frozen=True)
class TerraformPlan:
    """A saved plan: `plan_id` and `fingerprint` name the one file that may be applied.

    `changes` holds what would be done, `drift` what was changed behind Terraform's back,
    `resources` all that will be there afterwards.
    """

    plan_id: str
    fingerprint: str
    engine: str
    destroys: bool
    changes: tuple[ResourceChange, ...]
    outputs: tuple[OutputChange, ...] = ()
    drift: tuple[ResourceChange, ...] = ()
    resources: tuple[PlannedResource, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether applying the plan changes no resource and no output."""
        return not any(change.has_effect for change in self.changes) and not self.outputs

    def count_actions(self, *actions: PlanAction) -> int:
        """Return how many resources have one of these actions."""
        return sum(change.action in actions for change in self.changes)

    def __str__(self) -> str:
        return (
            f"{self.count_actions(PlanAction.CREATE)} to create, "
            f"{self.count_actions(PlanAction.UPDATE)} to change in place, "
            f"{self.count_actions(PlanAction.REPLACE)} to replace, "
            f"{self.count_actions(PlanAction.DELETE)} to destroy"
        )


def parse_action(actions: list[str]) -> PlanAction:
    """Return one action for Terraform's list of actions: delete and create, in either order, is replace."""
    return PlanAction.REPLACE if len(actions) > 1 else PlanAction(actions[0])
