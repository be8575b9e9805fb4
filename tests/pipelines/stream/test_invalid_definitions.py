"""A wrong definition is refused before anything starts: the error names the field and the fix."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.engine.errors import DefinitionError
from penstock.stream import count, fixed, from_document, from_yaml, read

CASES = yaml.safe_load((Path(__file__).parent / "invalid_definitions.yaml").read_text(encoding="utf-8"))


def test_the_definition_that_the_wrong_ones_begin_from_is_right() -> None:
    assert from_document(CASES["right"]).plan.name == "sensor_minute"


@pytest.mark.parametrize("case", CASES["wrong"], ids=lambda case: str(case["change"]))
def test_a_wrong_definition_names_the_field_and_the_fix(case: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = from_document(CASES["right"] | case["change"], "somewhere.yaml").plan
    assert refused.value.field == case["field"]
    assert case["fix"] in str(refused.value)
    assert refused.value.location


def nested(words: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"after_count": 1}
    for _ in range(words):
        inner = {"repeatedly": inner}
    return {"trigger": inner}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"window": {"fixed": "9" * 5000 + " s"}},
            "window.fixed.size: '9* is not a duration. Write a number and a unit",
        ),
        (
            {"steps": [{"filter": "temperature > " + "9" * 5000}]},
            "filter: .* a number of more than 38 digits",
        ),
        (
            {"steps": [{"filter": "not " * 5000 + "site = 'a'"}]},
            "filter: 'not .*, nested too deeply. Write a",
        ),
        ({"write": "n" * 300}, "write.table: 'n*'. Use at most 200 characters"),
        (nested(60), "trigger: 61 nested triggers. Nest at most 50 triggers"),
        (nested(5000), "somewhere.yaml: the document: nested too deep"),
    ],
    ids=["duration", "number", "condition", "name", "trigger", "document"],
)
def test_what_is_too_long_or_too_deep_is_refused_as_well(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        _ = from_document(CASES["right"] | change, "somewhere.yaml").plan


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("read: sensors\nkey: device\nread: cards\n", "duplicate key 'read', at line 3"),
        ("read: sensors\nwindow:\n  fixed: 1 s\n  fixed: 2 s\n", "duplicate key 'fixed', at line 4"),
        ("read: " + "[" * 5000, "nested too deeply"),
    ],
    ids=["section", "inside", "deep"],
)
def test_a_file_that_says_something_twice_is_refused_and_so_is_one_without_a_bottom(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "stream.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError, match=says) as refused:
        from_yaml(file)
    assert refused.value.location == str(file)


def test_what_a_merge_brings_may_be_said_again(tmp_path: Path) -> None:
    file = tmp_path / "stream.yaml"
    lines = ["read: sensors", "demo: &shown {a: 1}", "aggregate: {n: count()}", "window: {fixed: 1 s}"]
    file.write_text("\n".join([*lines, "write: {<<: {table: m, mode: log}, table: n}"]), encoding="utf-8")
    assert from_yaml(file).plan.only_stage.sinks[0].table == "n"


@pytest.mark.parametrize("question", ["read", "aggregate", "window", "write"])
def test_an_open_question_is_named(question: str) -> None:
    document = {name: value for name, value in CASES["right"].items() if name != question}
    with pytest.raises(DefinitionError) as refused:
        _ = from_document(document, "somewhere.yaml").plan
    assert refused.value.field == question


@pytest.mark.parametrize(
    ("question", "again"),
    [
        ("key", lambda pipeline: pipeline.key("site")),
        ("aggregate", lambda pipeline: pipeline.aggregate(m=count())),
        ("window", lambda pipeline: pipeline.window(fixed("2 minutes"))),
        ("trigger", lambda pipeline: pipeline.trigger()),
        ("accumulation", lambda pipeline: pipeline.accumulation("discarding")),
        ("deduplicate", lambda pipeline: pipeline.deduplicate()),
    ],
)
def test_a_question_is_answered_once(question: str, again: Any) -> None:
    whole = read("sensors").deduplicate().key("device").aggregate(n=count()).window(fixed("1 minute"))
    with pytest.raises(DefinitionError, match="set twice"):
        again(whole.trigger().accumulation("retracting"))
