"""Nothing outside of a sink's own module matches on it: whoever needs to know something asks it."""

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from tests.pipelines.engine.kind_matches import find_kind_matches

from penstock.engine import sinks
from penstock.engine.plan.sinks import Sink

SINKS = {
    member
    for module_info in iter_modules(sinks.__path__)
    for member in vars(import_module(f"{sinks.__name__}.{module_info.name}")).values()
    if isinstance(member, type) and issubclass(member, Sink) and not isabstract(member)
}


def test_nothing_matches_on_a_sink() -> None:
    assert len(SINKS) == 5
    assert find_kind_matches(SINKS) == []
