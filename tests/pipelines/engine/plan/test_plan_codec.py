"""Plans are values: equality, storage and fingerprints depend only on their content."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from tests.pipelines.plan_strategies import build_plan, plans

from penstock.engine.errors import PlanFormatError
from penstock.engine.plan.codec import contract_version, fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import RowCheck
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.fixed import Fixed


@settings(deadline=None)
@given(plans())
def test_a_plan_round_trips_through_json(plan: Plan) -> None:
    stored = json.loads(json.dumps(plan_to_dict(plan)))
    assert plan_from_dict(stored) == plan
    assert fingerprint(plan_from_dict(stored)) == fingerprint(plan)


@settings(deadline=None)
@given(plans(), plans())
def test_fingerprints_are_equal_exactly_when_plans_are(one: Plan, other: Plan) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


@settings(deadline=None)
@given(plans())
def test_random_plans_are_valid(plan: Plan) -> None:
    assert validate_plan(plan) is plan


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    plan = build_plan(Fixed(60_000), Repeatedly(AfterCount(3)))
    assert fingerprint(plan) == "098a7c5c12452c3b721bacfe0d99998ebd122f1e3c80b3e42f041f74801c91cd"


def test_a_plan_cannot_be_changed() -> None:
    plan = build_plan(Fixed(60_000))
    with pytest.raises(FrozenInstanceError):
        plan.name = "other"  # type: ignore[misc]  # this is what is tested


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "penstock-plan/0"}, "reads 'penstock-plan/1'"),
        ({"plan": {"kind": "Nothing"}}, "of kind 'Nothing'"),
        ({"plan": {"kind": "Fixed", "size": 1}}, "holds Fixed, not a plan"),
        ({"plan": {"kind": "Fixed", "length": 1}}, "Fixed cannot be read"),
        ({"plan": {"kind": "Fixed", "size": 0}}, "Fixed cannot be read"),
    ],
)
def test_a_stored_plan_of_another_format_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(PlanFormatError, match=message):
        plan_from_dict(plan_to_dict(build_plan(Fixed(60_000))) | change)


@settings(deadline=None)
@given(plans())
def test_a_trigger_that_can_finish_is_refused_unless_allowed(plan: Plan) -> None:
    strict = replace(plan, stages=(replace(plan.only_stage, may_finish=False),))
    if plan.only_stage.trigger.can_finish:
        with pytest.raises(Exception, match="may_finish"):
            validate_plan(strict)
    else:
        assert validate_plan(strict) is strict


def test_checks_of_an_input_change_only_the_fingerprint_of_its_plan() -> None:
    plan = build_plan(Fixed(60_000), Repeatedly(AfterCount(3)))
    checks = (RowCheck("known", "key IS NULL", "warn"),)
    checked = replace(plan, sources=(replace(plan.sources[0], checks=checks),))
    assert "checks" not in json.dumps(plan_to_dict(plan))
    assert plan_from_dict(json.loads(json.dumps(plan_to_dict(checked)))) == checked
    assert fingerprint(checked) != fingerprint(plan)


def test_row_checks_determine_the_contract_version() -> None:
    source = build_plan(Fixed(60_000), Repeatedly(AfterCount(3))).sources[0]
    versions = {
        contract_version(replace(source, checks=(RowCheck("known", "key IS NULL", action),)))
        for action in ("warn", "stop")
    }
    assert versions == {contract_version(source)}
    quarantining = (RowCheck("known", "key IS NULL", "quarantine"),)
    assert contract_version(replace(source, checks=quarantining)) not in versions
