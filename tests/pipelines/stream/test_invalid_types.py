"""What is of another kind than belongs there is refused in one sentence, as Python and as YAML."""

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

FORMS = yaml.safe_load((Path(__file__).parent / "equivalent_definitions.yaml").read_text(encoding="utf-8"))
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "1 minute", [], {}, [None], [1, 2], {"a": 1}, {"fixed": "1 minute"},
    "count()", "after_watermark", [[]], {1: 2}, {"": ""}, float("nan"), 10**30, "nope > 3", "penstock:nope",
    "../x", "\u2603",
]  # fmt: skip


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    yield at
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, part in parts:
        yield from places(part, (*at, name))


def put(node: Any, at: tuple[Any, ...], junk: Any) -> Any:
    """The document with something else at a place."""
    if not at:
        return junk
    changed = copy.copy(node)
    changed[at[0]] = put(node[at[0]], at[1:], junk)
    return changed


SPOTS = [(form["yaml"], at) for form in FORMS for at in places(form["yaml"])]


@settings(max_examples=scale_examples(300), deadline=None)
@given(spot=st.sampled_from(SPOTS), junk=st.sampled_from(JUNK))
def test_whatever_stands_somewhere_a_definition_is_right_or_refused_in_a_sentence(
    spot: tuple[Any, tuple[Any, ...]], junk: Any
) -> None:
    document, at = spot
    refused = refusal(put(document, at, junk))
    assert refused is None or (refused.field and "\n" not in str(refused))


def refusal(document: Any) -> DefinitionError | None:
    """What is said of a definition, if anything."""
    try:
        from_document(document, "somewhere.yaml").to_plan("whole")
    except DefinitionError as problem:
        return problem
    return None


def whole() -> Pipeline:
    return read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute"))


def over(window: Any) -> Pipeline:
    return read("sensors").key("device").aggregate(n=count()).window(window).write("n")


def told(**options: Any) -> Pipeline:
    return (
        read("sensors").key("device").stateful(alarm, **({"state": Alarm, "returns": {"a": "INT"}} | options))
    )


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: over("1 minute"), r"window: '1 minute'. Give a window, as in fixed"),
    (lambda: over(records(5)), r"window: CountPolicy\(n=5\). Give a window"),
    (lambda: over(tumbling(5)), r"window.tumbling: 5. Give records\(5\)"),  # type: ignore[arg-type]
    (lambda: over(sliding_by(punctuation("n > 1"), records(5))), r"window.sliding_by.evict: Punct"),  # type: ignore[arg-type]
    (lambda: over(tumbling(delta("device", 1))).plan, r"window.delta.field: 'device' is STRING"),
    (lambda: delta("temperature", "1"), r"window.delta.by: '1'"),  # type: ignore[arg-type]
    (lambda: over(fixed("40000 years")), r"window.fixed.size: '40000 years'"),
    (lambda: fixed("20000000 days"), r"window.fixed.size: 1728000000000000. Give at most 1000000000000000 milli"),
    (lambda: whole().trigger("1 hour"), r"trigger: '1 hour'. Give a trigger"),  # type: ignore[arg-type]
    (lambda: after_watermark(early="10 seconds"), r"after_watermark.early: '10 seconds'"),  # type: ignore[arg-type]
    (lambda: after_all([after_count(1)]), r"trigger.after_all: \[AfterCount"),  # type: ignore[arg-type]
    (lambda: repeatedly(after_count), r"trigger.repeatedly: <function"),  # type: ignore[arg-type]
    (lambda: or_finally(after_count(1), None), r"trigger.or_finally.until: None"),  # type: ignore[arg-type]
    (lambda: whole().accumulation(""), r"accumulation: ''. Write one of: discarding"),
    (lambda: read("sensors").aggregate(n=count), r"aggregate.n: <function"),  # type: ignore[arg-type]
    (lambda: read("sensors").aggregate(_n=count()), r"aggregate._n: '_n'. Choose a name"),
    (lambda: of("sensors", "count()"), r"aggregate.of: 'count\(\)'"),  # type: ignore[arg-type]
    (lambda: combine(str, "word"), r"aggregate.combine: <class 'str'>"),  # type: ignore[arg-type]
    (lambda: quantiles("n", "0.5"), r"aggregate.quantiles.ranks"),  # type: ignore[arg-type]
    (lambda: distinct("n", precision="9"), r"aggregate.distinct.precision"),  # type: ignore[arg-type]
    (lambda: read(["sensors"]), r"read: \['sensors'\]. Name a topic"),  # type: ignore[arg-type]
    (lambda: read("sensors", max_out_of_orderness={}), r"read.max_out_of_orderness: {}"),  # type: ignore[arg-type]
    (lambda: over(fixed(1)).write("../n"), r"write.table: '../n'. Use letters, digits"),
    (lambda: whole().named("a/b"), r"name: 'a/b'. Use letters, digits"),
    (lambda: whole().publish("a b"), r"publish: 'a b'"),
    (lambda: whole().publish("sensors").plan, r"publish: sensors is read here"),
    (lambda: read("sensors").key(["device"]), r"key: \['device'\]. Name the fields"),  # type: ignore[arg-type]
    (lambda: read("sensors").filter(None), r"filter: None"),  # type: ignore[arg-type]
    (lambda: whole().filter("temperature = 'hot'").write("n").plan, r"filter: 'temperature' is DOUBLE, and 'hot'"),
    (lambda: read("sensors").select(3), r"select: 3. Name columns"),  # type: ignore[arg-type]
    (lambda: read("sensors").map(print, ["a"]), r"map.returns: \['a'\]. Write names and types"),  # type: ignore[arg-type]
    (lambda: told(state=None), r"stateful.state: None. Give the class"),
    (lambda: told(returns={"a": int}), r"stateful.returns.a: <class 'int'>"),
    (lambda: read_panes("minutes", columns=["a"]), r"read_panes.columns: \['a'\]"),  # type: ignore[arg-type]
    (lambda: union("sensors", "cards"), r"union: 'sensors'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: join(read("sensors"), read("cards"), by=None), r"join.by: None. Write a name"),  # type: ignore[arg-type]
    (lambda: whole().write("n").then("m"), r"then: 'm'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: whole().write("n").also("m"), r"also: 'm'. Give a pipeline"),  # type: ignore[arg-type]
    (lambda: over(fixed(1)).aggregate(N=count()), "set twice"),
    (lambda: read("sensors", event_time="device").aggregate(n=count()).window(fixed(1)).write("n").plan,
     r"event_time: 'device' of sensors is STRING"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "says"), WRONG, ids=[says[:40] for _, says in WRONG])
def test_what_is_of_another_kind_is_named_where_it_is_written(
    definition: Callable[[], Any], says: str
) -> None:
    with pytest.raises(DefinitionError, match=says):
        definition()


def test_columns_that_differ_in_their_case_alone_are_one() -> None:
    twice = read("sensors").key("device").window(fixed("1 minute")).write("n")
    for names in (("n", "N"), ("Device",), ("Window_Start",)):
        with pytest.raises(DefinitionError, match="Choose another name"):
            _ = twice.aggregate(**{name: count() for name in names}).plan
