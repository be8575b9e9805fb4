"""No code outside of a window's module matches on its class."""

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules

from tests.pipelines.engine.kind_matches import find_kind_matches

from penstock.engine import windows
from penstock.engine.windows.order_policy import OrderPolicy
from penstock.engine.windows.window import Window


def list_kinds(base: type) -> set[type]:
    return {
        member
        for module_info in iter_modules(windows.__path__)
        for member in vars(import_module(f"{windows.__name__}.{module_info.name}")).values()
        if isinstance(member, type) and issubclass(member, base) and member is not base
        if not isabstract(member)
    }


def test_no_code_matches_on_a_window() -> None:
    kinds = list_kinds(Window)
    assert len(kinds) == 10
    assert find_kind_matches(kinds) == []


def test_no_code_matches_on_a_policy_of_order_windows() -> None:
    kinds = list_kinds(OrderPolicy)
    assert len(kinds) == 4
    assert find_kind_matches(kinds) == []
