"""The JSON Schemas of contracts, pipelines and suites: they accept what is shipped, and refuse mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from penstock.platform.cli.commands.schema import BUILDERS

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / ".vscode" / "schemas"
FILES_BY_KIND = json.loads((ROOT / ".vscode" / "settings.json").read_text("utf-8"))["yaml.schemas"]

PIPELINE = {
    "read": "sensors",
    "key": "device",
    "aggregate": {"readings": "count()"},
    "window": {"fixed": "1 minute"},
    "write": "readings",
}
CONTRACT = {"topic": "t", "fields": [{"name": "a", "type": "string", "doc": "A."}]}
EXPECTATION = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}
SUITE = {"expectations": [EXPECTATION]}


def load_validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / f"{kind}.schema.json").read_text("utf-8")))


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_schema_of_the_checkout_is_the_one_that_the_command_prints(run: Any, kind: str) -> None:
    assert run("schema", kind).out == (SCHEMAS / f"{kind}.schema.json").read_text("utf-8")


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_shipped_file_is_valid(kind: str) -> None:
    validator = load_validator(kind)
    files = list(ROOT.glob(FILES_BY_KIND[f".vscode/schemas/{kind}.schema.json"]))
    assert files
    for file in files:
        document = yaml.safe_load(file.read_text("utf-8"))
        assert [error.message for error in validator.iter_errors(document)] == [], file


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("pipeline", PIPELINE),
        (
            "pipeline",
            {**PIPELINE, "read": {"topic": "sensors", "idle_after": "10 s", "max_future_skew": "unlimited"}},
        ),
        ("pipeline", {**PIPELINE, "window": {"sliding": ["1 hour", "5 minutes"]}}),
        ("pipeline", {**PIPELINE, "window": {"mypackage.shifts:shift": {}}}),
        (
            "pipeline",
            {**PIPELINE, "trigger": {"after_watermark": {"early": {"every": "10 s"}}, "lateness": "1 hour"}},
        ),
        ("pipeline", {**PIPELINE, "trigger": "default"}),
        ("pipeline", {**PIPELINE, "aggregate": {"x": "mypackage.stats:geometric_mean(a)"}}),
        ("pipeline", {**PIPELINE, "write": [{"table": "a", "mode": "log"}, "b"]}),
        ("contract", {**CONTRACT, "max_out_of_orderness": "PT1H", "owner": "team:x"}),
        ("contract", {**CONTRACT, "fields": [{"name": "a", "type": "array<decimal(4, 2)>", "doc": "A."}]}),
        ("suite", {**SUITE, "batches": {"by": "day"}}),
    ],
)
def test_correct_documents_are_accepted(kind: str, document: dict[str, Any]) -> None:
    assert [error.message for error in load_validator(kind).iter_errors(document)] == []


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("pipeline", {**PIPELINE, "windw": {"fixed": "1 minute"}}),
        ("pipeline", {name: part for name, part in PIPELINE.items() if name != "read"}),
        ("pipeline", {**PIPELINE, "read": {"topic": "sensors", "idle_aftr": "10 s"}}),
        ("pipeline", {**PIPELINE, "window": {"fixed": "a minute"}}),
        ("pipeline", {**PIPELINE, "window": {"tumbling_by": "1 minute"}}),
        ("pipeline", {**PIPELINE, "aggregate": {"n": "avg(a)"}}),
        ("pipeline", {**PIPELINE, "aggregate": {"n": "count"}}),
        ("pipeline", {**PIPELINE, "accumulation": "retract"}),
        ("pipeline", {**PIPELINE, "trigger": {"after_watermark": {"early": "10 seconds"}}}),
        ("pipeline", {**PIPELINE, "write": {"table": "a", "mode": "upsert"}}),
        ("pipeline", {**PIPELINE, "steps": [{"filtr": "a > 1"}]}),
        ("contract", {**CONTRACT, "topc": "x"}),
        ("contract", {**CONTRACT, "fields": [{"name": "a", "type": "sting", "doc": "A."}]}),
        ("contract", {**CONTRACT, "fields": [{"name": "a", "type": "string"}]}),
        ("contract", {**CONTRACT, "max_future_skew": "a day"}),
        ("contract", {**CONTRACT, "unknown_fields": "drop"}),
        ("suite", {"expectations": [{**EXPECTATION, "type": "expect_column_values_to_not_be_nul"}]}),
        ("suite", {"expectations": [{**EXPECTATION, "kwargs": {"colum": "a"}}]}),
        ("suite", {"expectations": [{**EXPECTATION, "meta": {"action": "drop"}}]}),
    ],
)
def test_mistakes_are_refused(kind: str, document: dict[str, Any]) -> None:
    assert not load_validator(kind).is_valid(document)
