"""The public API is documented: each function, each argument, and a page that is made from them."""

import inspect
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.reference.python_api import PAGE, list_methods, list_sections, write_page

from penstock import stream
from penstock.stream import Pipeline, after_watermark, count, fixed, read

FUNCTIONS = {
    f"{title}: {function.__name__}": function
    for title, functions in list_sections().items()
    for function in functions
}
HAS_NO_EXAMPLE = {
    "from_yaml",
    "from_document",
    "named",
    "key",
    "window",
    "accumulation",
    "publish",
    "to_plan",
}
HAS_NO_EXAMPLE |= {"deduplicate", "apply", "arrow", "stateful", "same_windows"}
"""Functions whose call is in the examples of the others, or on the page about writing a pipeline."""
EXPLAINED_OPTIONS = {
    "read": ("future_records", "advance_when_idle", "idle_after", "max_out_of_orderness", "max_future_skew"),
    "trigger": ("lateness", "may_finish", "on_time_pane", "final_pane"),
}


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == write_page(), "run python -m tests.reference.python_api"


def test_the_page_has_every_public_name() -> None:
    documented = {function.__name__ for function in FUNCTIONS.values()}
    assert set(stream.__all__) - documented == {"Pipeline"}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_each_argument_is_described(function: Callable[..., Any]) -> None:
    described = set(re.findall(r"^ {8,12}(\w+): ", inspect.getdoc(function) or "", re.MULTILINE))
    described |= set(re.findall(r"^ {4}(\w+): ", inspect.getdoc(function) or "", re.MULTILINE))
    assert set(inspect.signature(function).parameters) - {"self"} <= described


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_a_function_has_an_example(function: Callable[..., Any]) -> None:
    assert function.__name__ in HAS_NO_EXAMPLE or "Example:" in (function.__doc__ or "")


@pytest.mark.parametrize(("name", "options"), EXPLAINED_OPTIONS.items())
def test_the_options_of_event_time_are_explained_in_more_than_a_word(
    name: str, options: tuple[str, ...]
) -> None:
    text = " ".join((FUNCTIONS.get(f"Inputs: {name}") or getattr(Pipeline, name)).__doc__.split())
    for option in options:
        explanation = text.split(f" {option}: ")[1].split(": ")[0]
        assert len(explanation.split()) >= 8, option


def test_completion_of_a_pipeline_offers_verbs_only() -> None:
    pipeline = read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute"))
    offered = {name for name in dir(pipeline) if not name.startswith("_")}
    assert offered == {method.__name__ for method in list_methods()} | {"plan"}


def test_completion_of_the_package_offers_the_public_names_only() -> None:
    assert set(dir(stream)) == set(stream.__all__)


def test_the_help_of_a_trigger_fits_a_screen_and_names_short_types() -> None:
    text = pydoc.plain(pydoc.render_doc(after_watermark))
    assert len(text.splitlines()) <= 25
    assert "Trigger | None" in text
    assert "Union" not in text


def test_each_package_that_users_import_ships_its_types() -> None:
    for package in ("stream", "engine", "pipelines", "conformance"):
        assert (PAGE.parents[1] / "penstock" / package / "py.typed").is_file()
