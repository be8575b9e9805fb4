"""No code outside of a trigger's module matches on its class."""

import pytest
from tests.pipelines.engine.kind_matches import find_kind_classes, find_kind_matches, find_matches

from penstock.engine import triggers
from penstock.engine.triggers.trigger import Trigger


def test_no_code_matches_on_a_trigger() -> None:
    kinds = find_kind_classes(triggers, Trigger)
    assert len(kinds) == 11
    assert find_kind_matches(kinds) == []


@pytest.mark.parametrize(
    "statement",
    [
        "isinstance(x, Default | Every)",
        "isinstance(x, (int, plan.Every))",
        "type(x) is Every",
        "type(x).__name__ == 'Every'",
        "x.__class__ in (Every, Default)",
        "match x:\n  case Every(period): pass",
    ],
)
def test_the_scan_finds_a_match(statement: str) -> None:
    assert find_matches(statement, {"Every"})
    assert not find_matches(f"{statement}\nclass Every: pass", {"Every"})


@pytest.mark.parametrize("statement", ["x == Every(1)", "Every(1)", "isinstance(x, Trigger)", "type(x)"])
def test_the_scan_passes_other_uses(statement: str) -> None:
    assert not find_matches(statement, {"Every"})
