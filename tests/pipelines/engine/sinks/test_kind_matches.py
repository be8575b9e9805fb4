"""Code outside of the module of a sink does not match on its class."""

from tests.pipelines.engine.kind_matches import find_kind_classes, find_kind_matches

from penstock.engine import sinks
from penstock.engine.plan.sinks import Sink


def test_nothing_matches_on_a_sink() -> None:
    kinds = find_kind_classes(sinks, Sink)
    assert len(kinds) == 5
    assert find_kind_matches(kinds) == []
