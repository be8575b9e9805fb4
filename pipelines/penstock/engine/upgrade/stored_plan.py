"""The definition that a stream's state follows, stored beside the state."""

import json
from collections.abc import Callable, Collection
from pathlib import Path

from penstock.core.files import write_atomically
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import PlanChangedError
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.stages import Plan
from penstock.engine.upgrade.definition_changes import record_change
from penstock.engine.upgrade.plan_comparison import compare_plans
from penstock.engine.upgrade.upgrade_class import PlanUpgrade, UpgradeClass

_PLAN_FILE = "plan.json"


def read_stored_plan(directory: Path) -> Plan | None:
    """Return the definition of the state in a folder; None if there is none."""
    path = directory / _PLAN_FILE
    return plan_from_dict(json.loads(path.read_text("utf-8"))) if path.exists() else None


def store_plan(directory: Path, plan: Plan) -> None:
    """Store the definition that the state in a folder follows from now on."""
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / _PLAN_FILE, json.dumps(plan_to_dict(plan)))


def assess_upgrade(directory: Path, plan: Plan, from_now: Collection[str] = ()) -> PlanUpgrade | None:
    """Compare a definition with that of the state; return None if there is no state yet."""
    last_outcome = BatchJournal(directory / "journal").read_last_outcome()
    return None if last_outcome is None else _compare_with_stored(directory, plan, last_outcome, from_now)


def accept_plan(
    directory: Path,
    plan: Plan,
    last_outcome: BatchOutcome | None,
    check_fits: Callable[[BatchOutcome], None] = lambda _: None,
) -> PlanUpgrade:
    """Make a state follow this definition. Raises PlanChangedError if it does not fit.

    `check_fits` checks a state of another definition, and raises the same error if its types differ.
    """
    upgrade = (
        PlanUpgrade(plan.name)
        if last_outcome is None
        else _compare_with_stored(directory, plan, last_outcome, ())
    )
    if upgrade.upgrade_class > UpgradeClass.COMPATIBLE:
        raise PlanChangedError(
            plan.name,
            f"its definition changed, and its state does not fit: {upgrade.description}",
            f"See `penstock stream plan-upgrade {plan.name}`, then run `penstock stream upgrade {plan.name}`, or "
            "revert the change",
        )
    if last_outcome is not None and last_outcome.plan != fingerprint(plan):
        check_fits(last_outcome)
    if last_outcome is not None and upgrade.differences:
        record_definition_change(directory, plan, last_outcome)
    store_plan(directory, plan)
    return upgrade


def record_definition_change(directory: Path, plan: Plan, last_outcome: BatchOutcome) -> None:
    """Record that the state follows another definition from now on, for those who recompute results."""
    previous_plan = read_stored_plan(directory)
    assert previous_plan is not None, "the plan of a state is always stored"
    record_change(directory / "journal", previous_plan, plan, last_outcome)


def _compare_with_stored(
    directory: Path, plan: Plan, last_outcome: BatchOutcome, from_now: Collection[str]
) -> PlanUpgrade:
    if last_outcome.plan == fingerprint(plan):
        return PlanUpgrade(plan.name)
    previous_plan = read_stored_plan(directory)
    if previous_plan is None:
        raise PlanChangedError(
            plan.name,
            f"its state was written under another definition ({last_outcome.plan[:8]}), which was not stored",
            f"Revert the change, or replay the stream: `penstock stream replay {plan.name}`",
        )
    return compare_plans(previous_plan, plan, from_now)
