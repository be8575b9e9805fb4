"""The actions of Dagster's runs in the journal of actions, with the user if Dagster knows one.

Dagster itself has no users. A run has one if its launcher set the tag `user`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import OpExecutionContext
from dagster._core.storage.tags import SCHEDULE_NAME_TAG, SENSOR_NAME_TAG, USER_TAG

from penstock.platform.services.operator_actions import record_action

UNKNOWN_USER = "unknown"
LAUNCHERS = {USER_TAG: "", SCHEDULE_NAME_TAG: "schedule ", SENSOR_NAME_TAG: "sensor "}
"""The tags that say who launched a run, each with what precedes the name."""


@dataclass(frozen=True)
class RunActions:
    """Records what runs do, in the journal of a home."""

    home: Path

    def record(
        self, context: OpExecutionContext, action: str, target: str, details: Mapping[str, Any] | None = None
    ) -> None:
        """Record an action of a run, before it is carried out."""
        record_action(
            self.home,
            action,
            target,
            {**(details or {}), "run": context.run_id},
            origin="dagster",
            user=find_launcher(context.run.tags),
        )


def find_launcher(tags: Mapping[str, str]) -> str:
    """Return who launched a run by its tags: a user, a schedule or a sensor."""
    return next((f"{kind}{tags[tag]}" for tag, kind in LAUNCHERS.items() if tag in tags), UNKNOWN_USER)
