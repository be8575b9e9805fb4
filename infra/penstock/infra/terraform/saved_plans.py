"""Saved plans on disk: the file that Terraform applies, and the summary that was shown.

A saved plan contains secrets in clear text, so its folder is private and is removed when the plan is used.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.infra.terraform.errors import UnknownPlanError
from penstock.infra.terraform.plans import TerraformPlan

_PLAN_FILE_NAME = "plan.tfplan"
_SUMMARY_FILE_NAME = "shown.json"


@dataclass(frozen=True)
class SavedPlans:
    """The saved plans of one environment."""

    directory: Path

    def save(self, draft: Path, plan: TerraformPlan) -> Path:
        """Store a draft under the plan's name, with its summary."""
        folder = self.directory / plan.plan_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _SUMMARY_FILE_NAME).write_bytes(msgspec.json.encode(plan))
        return draft.replace(folder / _PLAN_FILE_NAME)

    def load(self, plan_id: str) -> TerraformPlan:
        """Read the summary of a plan."""
        path = self.directory / Path(plan_id).name / _SUMMARY_FILE_NAME
        try:
            return msgspec.json.decode(path.read_bytes(), type=TerraformPlan)
        except (OSError, msgspec.DecodeError) as error:
            raise UnknownPlanError(
                f"There is no saved plan {plan_id!r} in {self.directory} ({error}). "
                "Plan again, and use its id."
            ) from error

    def load_all(self) -> Iterator[TerraformPlan]:
        """Yield the summaries of all stored plans, by id."""
        for path in sorted(self.directory.glob(f"*/{_SUMMARY_FILE_NAME}")):
            yield self.load(path.parent.name)

    def verified_plan_file(self, plan: TerraformPlan) -> Path:
        """Return the file to apply; refuse it if it is not byte for byte the one that was shown."""
        path = self.directory / plan.plan_id / _PLAN_FILE_NAME
        if not path.is_file():
            raise UnknownPlanError(
                f"The saved plan {plan.plan_id} is not in {self.directory}: it was applied or dropped. "
                "Plan again."
            )
        if plan_fingerprint(path) != plan.fingerprint:
            raise UnknownPlanError(f"{path} is not the plan that was shown as {plan.plan_id}. Plan again.")
        return path

    def delete(self, plan: TerraformPlan) -> None:
        """Remove a plan and its files, if they exist."""
        shutil.rmtree(self.directory / plan.plan_id, ignore_errors=True)


def plan_fingerprint(path: Path) -> str:
    """Return the SHA-256 of a plan file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
