"""Cases of other schemas are translated to the schema of the runner, from every form of file."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.conformance.dialects.translation import load_translated_cases, translate_case
from tests.pipelines.conformance.transcripts.test_runner import VALID_CASE, change_case

from penstock.conformance import ReferenceEngine, parse_case, run_cases

OTHER_SCHEMAS: list[dict[str, Any]] = [
    {
        "id": "one_element_at_a_time",
        "window": {"type": "tumbling_event_time", "size_ms": 10},
        "trigger": {"type": "purging", "inner": {"type": "count", "n": 2}},
        "allowed_lateness_ms": 0,
        "window_function": "sum",
        "steps": [
            {
                "inputs": [{"key": "k", "value": value, "timestamp": value} for value in (1, 2, 3)],
                "expect": [{"key": "k", "value": 3, "timestamp": 9}],
            }
        ],
    },
    {
        "id": "policies",
        "policy": "sliding, count(2), count(1)",
        "steps": [{"insert": 1}, {"insert": 2}, {"insert": 3}],
        "triggered": [[1], [1, 2], [2, 3]],
    },
    {
        "id": "facts",
        "window": {"type": "fixed", "size": 10, "offset": 0},
        "expect": [{"window": [0, 10], "ts": [1, 9]}],
    },
]


@pytest.mark.parametrize("form", ["document", "list", "lines", "alone"])
def test_cases_of_other_schemas_are_read_from_every_form_of_file(tmp_path: Path, form: str) -> None:
    texts = {
        "document": [json.dumps({"cases": OTHER_SCHEMAS})],
        "list": [json.dumps(OTHER_SCHEMAS)],
        "lines": ["\n".join(map(json.dumps, [{"header": True}, *OTHER_SCHEMAS]))],
        "alone": [json.dumps(case, indent=1) for case in OTHER_SCHEMAS],
    }
    paths = [tmp_path / f"{number}.json" for number in range(len(texts[form]))]
    for path, text in zip(paths, texts[form], strict=True):
        path.write_text(text, encoding="utf-8")
    verdicts = run_cases(load_translated_cases(paths), ReferenceEngine())
    assert [(verdict.id, verdict.is_ok) for verdict in verdicts] == [
        (case["id"], True) for case in OTHER_SCHEMAS
    ]


@pytest.mark.parametrize(
    ("other_schema", "own_schema"),
    [
        ({"type": "tumbling_event_time", "size": 10}, {"type": "fixed", "size": 10}),
        (
            {"type": "sliding_event_time", "size": 10, "slide_ms": 5000},
            {"type": "sliding", "size": 10, "period": 5},
        ),
        ({"type": "session_event_time", "gap_ms": 3000}, {"type": "sessions", "gap": 3}),
        (
            {"type": "tumbling_processing_time", "size_ms": 7000},
            {"type": "fixed", "size": 7, "time": "processing"},
        ),
    ],
)
def test_windows_and_triggers_of_other_schemas_are_known(
    other_schema: dict[str, Any], own_schema: dict[str, Any]
) -> None:
    other_case = change_case(
        window=other_schema,
        trigger={"type": "purging", "inner": {"type": "count", "n": 2}},
        on_time_pane="always",
    )
    own_case = change_case(
        window=own_schema,
        trigger={"type": "repeatedly", "of": [{"type": "after_count", "count": 2}]},
        accumulation="discarding",
    )
    translated, expected = (parse_case(translate_case(node)).script.plan for node in (other_case, own_case))
    assert translated == expected


@pytest.mark.parametrize(
    "case", [{"id": "x"}, {"id": "x", "policy": 3, "steps": [3]}, {"id": "x", "window_function": 1}]
)
def test_an_invalid_case_of_another_schema_does_not_stop_others(case: Any) -> None:
    invalid, valid = run_cases(list(map(translate_case, (case, VALID_CASE))), ReferenceEngine())
    assert invalid.malformed
    assert "object" not in invalid.malformed.replace("an object", "")
    assert valid.is_ok
