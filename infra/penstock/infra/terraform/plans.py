"""A plan as plain data: what would change, where, from what to what. Sensitive values are masked here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MASK = "(sensitive)"
UNKNOWN = "(known after apply)"


class Action(StrEnum):
    """What a plan does to one resource or output."""

    NOTHING = "no-op"
    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    FORGET = "forget"


@dataclass(frozen=True)
class ValueChange:
    """One attribute, by its path in the resource, before and after; sensitive values are masked."""

    path: str
    before: object
    after: object


@dataclass(frozen=True)
class ResourceChange:
    """What happens to one resource, and why it must be replaced, if it must."""

    address: str
    kind: str
    action: Action
    values: tuple[ValueChange, ...] = ()
    reason: str = ""

    @property
    def changes_something(self) -> bool:
        """Whether anything outside Terraform is touched."""
        return self.action not in (Action.NOTHING, Action.READ)


@dataclass(frozen=True)
class Resource:
    """One resource as it will be once the plan is applied; what is sensitive or not known yet is absent."""

    address: str
    kind: str
    values: dict[str, Any]


@dataclass(frozen=True)
class OutputChange:
    """What happens to one output; its value is not shown."""

    name: str
    action: Action


@dataclass(frozen=True)
class Plan:
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
    resources: tuple[Resource, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether applying it would change neither a resource nor an output."""
        return not any(change.changes_something for change in self.changes) and not self.outputs

    def count(self, *actions: Action) -> int:
        """How many resources get one of these actions."""
        return sum(change.action in actions for change in self.changes)

    def __str__(self) -> str:
        return (
            f"{self.count(Action.CREATE)} to create, {self.count(Action.UPDATE)} to change in place, "
            f"{self.count(Action.REPLACE)} to replace, {self.count(Action.DELETE)} to destroy"
        )


def read_action(actions: list[str]) -> Action:
    """Fold Terraform's list of steps into one word: delete and create, in either order, is replace."""
    return Action.REPLACE if len(actions) > 1 else Action(actions[0])
