"""The definition that a stream's state was made by, kept beside the state."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from uuid import uuid4

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import PlanChangedError
from penstock.pipelines.plan.codec import fingerprint, from_dict, to_dict
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.upgrade.changes import note_change
from penstock.pipelines.upgrade.classes import Class, Upgrade
from penstock.pipelines.upgrade.compare import compare

_FILE = "plan.json"


def stored_plan(directory: Path) -> Plan | None:
    """Return the definition that the state in a folder goes by; None where none was written."""
    path = directory / _FILE
    return from_dict(json.loads(path.read_text("utf-8"))) if path.exists() else None


def store_plan(directory: Path, plan: Plan) -> None:
    """Write down that the state in a folder goes by this definition from now on."""
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / f"{_FILE}.{uuid4().hex[:8]}.partial"
    partial.write_text(json.dumps(to_dict(plan)), "utf-8")
    partial.replace(directory / _FILE)


def upgrade_of(directory: Path, plan: Plan, from_now: Collection[str] = ()) -> Upgrade | None:
    """Compare a definition with the one that the state goes by; None where there is no state yet."""
    last = Journal(directory / "journal").last_outcome()
    return None if last is None else _upgrade(directory, plan, last, from_now)


def accept(
    directory: Path, plan: Plan, last: Outcome | None, fits: Callable[[Outcome], None] = lambda _: None
) -> Upgrade:
    """Have a state go by this definition. PlanChangedError where it cannot as it is.

    `fits` is asked of a state that another definition made, and raises the same where it has other types.
    """
    upgrade = Upgrade(plan.name) if last is None else _upgrade(directory, plan, last, ())
    if upgrade.takes > Class.COMPATIBLE:
        raise PlanChangedError(
            plan.name,
            f"its definition changed, and its state does not fit: {upgrade.in_words}",
            f"See `penstock stream plan-upgrade {plan.name}`, then `penstock stream upgrade {plan.name}`, or take "
            "the change back",
        )
    if last is not None and last.plan != fingerprint(plan):
        fits(last)
    if last is not None and upgrade.differences:
        note(directory, plan, last)
    store_plan(directory, plan)
    return upgrade


def note(directory: Path, plan: Plan, last: Outcome) -> None:
    """Write down, for whoever computes results again, that the state goes by another definition from now on."""
    before = stored_plan(directory)
    assert before is not None, "what a change is compared with was written down"
    note_change(directory / "journal", before, plan, last)


def _upgrade(directory: Path, plan: Plan, last: Outcome, from_now: Collection[str]) -> Upgrade:
    if last.plan == fingerprint(plan):
        return Upgrade(plan.name)
    before = stored_plan(directory)
    if before is None:
        raise PlanChangedError(
            plan.name,
            f"its state was made by another definition ({last.plan[:8]}), which was not written down",
            f"Take the change back, or replay it: `penstock stream replay {plan.name}`",
        )
    return compare(before, plan, from_now)
