"""Values of a wrong type are refused in one sentence, in Python and in YAML."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.stream.named_functions import Alarm, alarm

from penstock.engine.errors import DefinitionError
from penstock.stream import (
    Pipeline,
    after_all,
    after_count,
    after_watermark,
    combine,
    count,
    delta,
    distinct,
    fixed,
    from_document,
    join,
    of,
    or_finally,
    punctuation,
    quantiles,
    read,
    read_panes,
    records,
    repeatedly,
    sliding_by,
    tumbling,
    union,
)

DEFINITIONS = yaml.safe_load(
    (Path(__file__).parent / "equivalent_definitions.yaml").read_text(encoding="utf-8")
)
WRONG_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "1 minute", [], {}, [None], [1, 2], {"a": 1}, {"fixed": "1 minute"},
    "count()", "after_watermark", [[]], {1: 2}, {"": ""}, float("nan"), 10**30, "nope > 3", "penstock:nope",
    "../x", "\u2603",
]  # fmt: skip


def iter_paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every node of a document."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, child in children:
        yield from iter_paths(child, (*path, name))


def replace_node(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the document with another value at a path."""
    if not path:
        return value
    changed = copy.copy(node)
    changed[path[0]] = replace_node(node[path[0]], path[1:], value)
    return changed


DOCUMENT_PATHS = [
    (definition["yaml"], path) for definition in DEFINITIONS for path in iter_paths(definition["yaml"])
]


@settings(max_examples=scale_examples(300), deadline=None)
@given(document_path=st.sampled_from(DOCUMENT_PATHS), value=st.sampled_from(WRONG_VALUES))
def test_any_value_anywhere_is_accepted_or_refused_with_a_line_for_each_problem(
    document_path: tuple[Any, tuple[Any, ...]], value: Any
) -> None:
    document, path = document_path
    refused = find_definition_error(replace_node(document, path, value))
    for problem in () if refused is None else refused.problems:
        assert problem.field
        assert "\n" not in str(problem)


def find_definition_error(document: Any) -> DefinitionError | None:
    """Return the error of a definition, if it has one."""
    try:
        from_document(document, "somewhere.yaml").to_plan("pipeline")
    except DefinitionError as error:
        return error
    return None


def count_by_minute() -> Pipeline:
    return read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute"))


def count_in_window(window: Any) -> Pipeline:
    return read("sensors").key("device").aggregate(n=count()).window(window).write("n")


def keep_state(**options: Any) -> Pipeline:
    return (
        read("sensors").key("device").stateful(alarm, **({"state": Alarm, "returns": {"a": "INT"}} | options))
    )


WRONG_ARGUMENTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: count_in_window("1 minute"), r"window: '1 minute' is a duration, not a window. Write fixed"),
    (lambda: count_in_window(records(5)), r"window: CountPolicy\(n=5\). Give a window"),
    (lambda: count_in_window(tumbling(5)), r"window.tumbling: 5. Give records\(5\)"),  # type: ignore[arg-type]
    (lambda: count_in_window(sliding_by(punctuation("n > 1"), records(5))), r"window.sliding_by.evict: Punct"),  # type: ignore[arg-type]
    (lambda: count_in_window(tumbling(delta("device", 1))).plan, r"window.delta.field: 'device' is STRING"),
    (lambda: delta("temperature", "1"), r"window.delta.by: '1'"),  # type: ignore[arg-type]
    (lambda: count_in_window(fixed("40000 years")), r"window.fixed.size: '40000 years'"),
    (lambda: fixed("20000000 days"), r"window.fixed.size: 1728000000000000. Give at most 1000000000000000 milli"),
    (lambda: count_by_minute().trigger("1 hour"), r"trigger: '1 hour' is a duration, not a trigger"),  # type: ignore[arg-type]
    (lambda: after_watermark(early="10 seconds"), r"after_watermark.early: '10 seconds'"),  # type: ignore[arg-type]
    (lambda: after_all([after_count(1)]), r"trigger.after_all: \[AfterCount"),  # type: ignore[arg-type]
    (lambda: repeatedly(after_count), r"trigger.repeatedly: after_count is a function that is not called"),  # type: ignore[arg-type]
    (lambda: or_finally(after_count(1), None), r"trigger.or_finally.until: None"),  # type: ignore[arg-type]
    (lambda: count_by_minute().accumulation(""), r"accumulation: '' is not known. Write one of: discarding"),
    (lambda: read("sensors").aggregate(n=count), r"aggregate.n: count is a function that is not called"),  # type: ignore[arg-type]
    (lambda: read("sensors").aggregate(_n=count()), r"aggregate._n: '_n'. Choose a name"),
    (lambda: of("sensors", "count()"), r"aggregate.of: 'count\(\)'"),  # type: ignore[arg-type]
    (lambda: combine(str, "word"), r"aggregate.combine: <class 'str'>"),  # type: ignore[arg-type]
    (lambda: quantiles("n", "0.5"), r"aggregate.quantiles.ranks"),  # type: ignore[arg-type]
    (lambda: distinct("n", precision="9"), r"aggregate.distinct.precision"),  # type: ignore[arg-type]
    (lambda: read(["sensors"]), r"read: \['sensors'\]. Name a topic"),  # type: ignore[arg-type]
    (lambda: read("sensors", max_out_of_orderness={}), r"read.max_out_of_orderness: {}"),  # type: ignore[arg-type]
    (lambda: count_in_window(fixed(1)).write("../n"), r"write.table: '../n'. Use letters, digits"),
    (lambda: count_by_minute().named("a/b"), r"name: 'a/b'. Use letters, digits"),
    (lambda: count_by_minute().publish("a b"), r"publish: 'a b'"),
    (lambda: count_by_minute().publish("sensors").plan, r"publish: sensors is read here"),
    (lambda: read("sensors").key(["device"]), r"key: \['device'\]. Name the fields"),  # type: ignore[arg-type]
    (lambda: read("sensors").filter(None), r"filter: None"),  # type: ignore[arg-type]
    (lambda: count_by_minute().filter("temperature = 'hot'").write("n").plan,
     r"filter: 'temperature' is DOUBLE, and 'hot'"),
    (lambda: read("sensors").select(3), r"select: 3. Name columns"),  # type: ignore[arg-type]
    (lambda: read("sensors").map(print, ["a"]), r"map.returns: \['a'\]. Write names and types"),  # type: ignore[arg-type]
    (lambda: keep_state(state=None), r"stateful.state: None. Give the class"),
    (lambda: keep_state(returns={"a": int}), r"stateful.returns.a: <class 'int'>"),
    (lambda: read_panes("minutes", columns=["a"]), r"read_panes.columns: \['a'\]"),  # type: ignore[arg-type]
    (lambda: union("sensors", "cards"), r"union: 'sensors'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: join(read("sensors"), read("cards"), by=None), r"join.by: None. Write a name"),  # type: ignore[arg-type]
    (lambda: count_by_minute().write("n").then("m"), r"then: 'm'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: count_by_minute().write("n").also("m"), r"also: 'm'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: count_in_window(fixed(1)).aggregate(N=count()), "set twice"),
    (lambda: read("sensors", event_time="device").aggregate(n=count()).window(fixed(1)).write("n").plan,
     r"event_time: 'device' of sensors is STRING"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "message"), WRONG_ARGUMENTS, ids=[message[:40] for _, message in WRONG_ARGUMENTS]
)
def test_an_argument_of_a_wrong_type_is_named_by_its_field(
    definition: Callable[[], Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        definition()


def test_columns_that_differ_only_in_case_collide() -> None:
    pipeline = read("sensors").key("device").window(fixed("1 minute")).write("n")
    for names in (("n", "N"), ("Device",), ("Window_Start",)):
        with pytest.raises(DefinitionError, match="Choose another name"):
            _ = pipeline.aggregate(**{name: count() for name in names}).plan
