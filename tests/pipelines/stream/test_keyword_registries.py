"""Keywords are found by what their functions return, and nested keywords by annotations of parameters."""

import sys
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest
from tests.installed_kinds import forget_kinds, install_entry_points, write_modules

from penstock import stream
from penstock.core.kind_registry import KindRegistry
from penstock.engine.definition.durations import Duration
from penstock.engine.definition.keyword import find_keyword, keyword
from penstock.engine.errors import DefinitionError
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.trigger import Trigger
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    POLICY_KEYWORDS,
    SINK_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
    find_nested_registry,
)

API_KEYWORDS = (AGGREGATE_KEYWORDS, POLICY_KEYWORDS, TRIGGER_KEYWORDS, WINDOW_KEYWORDS)


@pytest.mark.parametrize("registry", API_KEYWORDS, ids=lambda registry: registry.noun)
def test_each_keyword_is_a_function_of_the_public_api(registry: KindRegistry[Any]) -> None:
    functions = registry.kinds_by_name.values()
    assert functions
    assert all(getattr(stream, function.__name__) is function for function in functions)


@pytest.mark.parametrize(
    ("annotation", "registry"),
    [
        (Trigger, TRIGGER_KEYWORDS),
        (AfterCount, TRIGGER_KEYWORDS),
        (Trigger | None, TRIGGER_KEYWORDS),
        (Trigger | str, None),
        (Duration, None),
        (tuple[Trigger, ...], None),
        (None, None),
        (Parameter.empty, None),
    ],
)
def test_the_annotation_of_a_parameter_selects_its_keywords(
    annotation: Any, registry: KindRegistry[Any] | None
) -> None:
    parameter = Parameter("part", Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)
    assert find_nested_registry(parameter) is registry


def test_no_two_registries_share_a_group_of_entry_points() -> None:
    registries = (*API_KEYWORDS, SINK_KEYWORDS)
    assert len({registry.entry_point_group for registry in registries}) == len(registries)


def test_annotations_may_be_strings() -> None:
    parameters = signature(stream.after_watermark, eval_str=True).parameters
    assert find_nested_registry(parameters["early"]) is TRIGGER_KEYWORDS


MODULE = """
from __future__ import annotations
from typing import TYPE_CHECKING
from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.repeatedly import Repeatedly
if TYPE_CHECKING:
    from penstock.engine.triggers.trigger import Trigger

@keyword("each")
def each() -> Repeatedly:
    return Repeatedly(AfterCount(1))

@keyword("without_annotation")
def without_annotation():
    return Repeatedly(AfterCount(1))

@keyword("unknown_annotation")
def unknown_annotation() -> Trigger:
    return Repeatedly(AfterCount(1))
"""


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_modules(tmp_path, monkeypatch, user_keywords=MODULE)
    return "user_keywords"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("evry", "there is no trigger 'evry'. Did you mean 'every'?"),
        ("user_keywords:without_annotation", "is not a trigger. Name a class of this kind, or a function"),
        ("user_keywords:unknown_annotation", "name 'Trigger' is not defined. Or write one of: after_all, "),
        ("penstock.stream.windows:fixed", "is not a trigger. Name a class of this kind, or a function"),
        ("penstock.engine.plan.stages:Plan", "is not a trigger. Name a class of this kind, or a function"),
    ],
)
def test_an_error_suggests_a_keyword(user_module: str, name: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        find_keyword(name, TRIGGER_KEYWORDS, "trigger")
    assert problem in str(raised.value)
    assert user_module not in TRIGGER_KEYWORDS.kinds_by_name


def test_an_entry_point_does_not_replace_a_keyword(user_module: str, tmp_path: Path) -> None:
    install_entry_points(
        tmp_path, "penstock.triggers", each=f"{user_module}:each", every=f"{user_module}:each"
    )
    forget_kinds(TRIGGER_KEYWORDS)
    try:
        each = find_keyword("each", TRIGGER_KEYWORDS, "trigger")
        assert each is vars(sys.modules[user_module])["each"]
        assert find_keyword("every", TRIGGER_KEYWORDS, "trigger") is stream.every
        assert vars(stream).get("each") is None
        assert stream.each is each
    finally:
        forget_kinds(TRIGGER_KEYWORDS)


def test_other_names_are_no_attributes_of_the_api() -> None:
    for module in (stream, stream.triggers):
        with pytest.raises(AttributeError, match=r"module 'penstock\.stream.*' has no attribute 'fixd'"):
            _ = module.fixd


def test_a_keyword_stays_a_plain_function() -> None:
    @keyword("plain")
    def plain(n: int) -> AfterCount:
        return AfterCount(n)

    assert plain(3) == AfterCount(3)
