"""Saved plans on disk: the file that Terraform applies, and beside it what was shown of it.

A saved plan holds secrets in clear, so its folder is its owner's alone and goes when the plan is used.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.infra.terraform.errors import UnknownPlanError
from penstock.infra.terraform.plans import Plan

_PLAN = "plan.tfplan"
_SHOWN = "shown.json"


@dataclass(frozen=True)
class SavedPlans:
    """The saved plans of one environment."""

    directory: Path

    def keep(self, draft: Path, plan: Plan) -> Path:
        """Put a draft under the plan's name, with what is shown of it."""
        folder = self.directory / plan.plan_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _SHOWN).write_bytes(msgspec.json.encode(plan))
        return draft.replace(folder / _PLAN)

    def shown(self, plan_id: str) -> Plan:
        """Read again what was shown of a plan."""
        path = self.directory / Path(plan_id).name / _SHOWN
        try:
            return msgspec.json.decode(path.read_bytes(), type=Plan)
        except (OSError, msgspec.DecodeError) as error:
            raise UnknownPlanError(
                f"There is no saved plan {plan_id!r} in {self.directory} ({error}). "
                "Plan again, and use its id."
            ) from error

    def all(self) -> Iterator[Plan]:
        """What was shown of every plan that is still to be used, by id."""
        for path in sorted(self.directory.glob(f"*/{_SHOWN}")):
            yield self.shown(path.parent.name)

    def file(self, plan: Plan) -> Path:
        """The file to apply; refused when it is not, byte for byte, the one that was shown."""
        path = self.directory / plan.plan_id / _PLAN
        if not path.is_file():
            raise UnknownPlanError(
                f"The saved plan {plan.plan_id} is not in {self.directory}: it was applied or dropped. "
                "Plan again."
            )
        if fingerprint(path) != plan.fingerprint:
            raise UnknownPlanError(f"{path} is not the plan that was shown as {plan.plan_id}. Plan again.")
        return path

    def drop(self, plan: Plan) -> None:
        """Remove a plan and all it holds; one that is gone already is fine."""
        shutil.rmtree(self.directory / plan.plan_id, ignore_errors=True)


def fingerprint(path: Path) -> str:
    """The SHA-256 of a plan file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
