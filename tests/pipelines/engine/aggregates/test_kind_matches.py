"""No code outside of an aggregate's module matches on its class."""

from importlib import import_module
from pkgutil import iter_modules

from tests.pipelines.engine.kind_matches import find_kind_matches

from penstock.engine import aggregates
from penstock.engine.aggregates import Aggregate

AGGREGATES = {
    member
    for module_info in iter_modules(aggregates.__path__)
    for member in vars(import_module(f"{aggregates.__name__}.{module_info.name}")).values()
    if isinstance(member, type) and issubclass(member, Aggregate) and not member.__abstractmethods__
}


def test_no_code_matches_on_an_aggregate() -> None:
    assert len(AGGREGATES) == 14
    assert find_kind_matches(AGGREGATES) == []
