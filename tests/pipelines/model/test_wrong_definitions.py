"""A wrong definition is refused before anything starts: the error names the field and the fix."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import count, fixed, from_document, read

CASES = yaml.safe_load((Path(__file__).parent / "wrong.yaml").read_text(encoding="utf-8"))


def test_the_definition_that_the_wrong_ones_begin_from_is_right() -> None:
    assert from_document(CASES["right"]).plan.name == "sensor_minute"


@pytest.mark.parametrize("case", CASES["wrong"], ids=lambda case: str(case["change"]))
def test_a_wrong_definition_names_the_field_and_the_fix(case: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = from_document(CASES["right"] | case["change"], "somewhere.yaml").plan
    assert refused.value.field == case["field"]
    assert case["fix"] in str(refused.value)
    assert refused.value.where


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
        ("refine", lambda pipeline: pipeline.refine("discarding")),
        ("deduplicate", lambda pipeline: pipeline.deduplicate()),
    ],
)
def test_a_question_is_answered_once(question: str, again: Any) -> None:
    whole = read("sensors").deduplicate().key("device").aggregate(n=count()).window(fixed("1 minute"))
    with pytest.raises(DefinitionError, match="answered twice"):
        again(whole.trigger().refine("retracting"))
