"""The case runner: forms of files, selection by id, verdicts, and cases that cannot run."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.conformance import (
    CaseVerdict,
    ReferenceEngine,
    parse_case,
    report_verdicts,
    run_cases,
    run_files,
)
from penstock.engine.errors import TranscriptError

VALID_CASE: dict[str, Any] = {
    "id": "right",
    "unit": "s",
    "window": {"type": "fixed", "size": 10, "offset": 0},
    "trigger": {"type": "after_watermark", "early": {"type": "after_count", "count": 2}, "late": None},
    "accumulation": "accumulating",
    "allowed_lateness": 0,
    "steps": [
        {"processing_time": 5},
        {"elements": [{"key": "k", "value": 1, "ts": 1}, {"key": "k", "value": 2, "ts": 2}]},
        {"expect": [{"window": [0, 10], "values": [2, 1], "early": True, "index": 0}]},
        {"watermark": 20},
        {"expect": [{"window": [0, 10], "values": [1, 2], "timing": "on_time", "final": True}]},
    ],
}


def change_case(**change: Any) -> dict[str, Any]:
    return copy.deepcopy(VALID_CASE) | change


def nest_triggers(times: int) -> dict[str, Any]:
    trigger: dict[str, Any] = {"type": "after_count", "count": 1}
    for _ in range(times):
        trigger = {"type": "repeatedly", "of": trigger}
    return trigger


def verdict_of(node: Any) -> CaseVerdict:
    (verdict,) = run_cases([node], ReferenceEngine())
    return verdict


def test_cases_are_read_from_a_document_a_list_or_lines(tmp_path: Path) -> None:
    forms = {
        "document.json": json.dumps(
            {"schema": "anchor-transcript/1", "cases": [VALID_CASE, change_case(id="two")]}, indent=1
        ),
        "list.json": json.dumps([VALID_CASE, change_case(id="two")]),
        "lines.jsonl": "\n".join(
            json.dumps(node) for node in ({"header": True, "about": "x"}, VALID_CASE, change_case(id="two"))
        ),
        "document.yaml": json.dumps({"cases": [VALID_CASE, change_case(id="two")]}),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        verdicts = list(run_files([tmp_path / name], ReferenceEngine()))
        assert [(verdict.id, verdict.is_ok) for verdict in verdicts] == [("right", True), ("two", True)]
    (tmp_path / "one.json").write_text(json.dumps(VALID_CASE, indent=1), encoding="utf-8")
    assert [verdict.is_ok for verdict in run_files([tmp_path / "one.json"], ReferenceEngine())] == [True]


def test_lines_may_have_any_character(tmp_path: Path) -> None:
    case = change_case(steps=[{"comment": "\u2028 \x85 \x0b"}, *VALID_CASE["steps"]])
    path = tmp_path / "cases.jsonl"
    path.write_text("\r\n".join(json.dumps(case, ensure_ascii=False) for _ in range(2)), encoding="utf-8")
    assert [verdict.is_ok for verdict in run_files([path], ReferenceEngine())] == [True, True]


def test_only_selected_cases_run_and_an_unknown_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([VALID_CASE, change_case(id="two")]), encoding="utf-8")
    assert [verdict.id for verdict in run_files([path], ReferenceEngine(), ["two"])] == ["two"]
    with pytest.raises(TranscriptError, match="no case has the id three"):
        list(run_files([path], ReferenceEngine(), ["two", "three"]))


@pytest.mark.parametrize("text", ["{not json", "[1, 2]", '{"id": "x"}\nnope'])
def test_a_file_of_another_form_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TranscriptError, match=r"broken\.json"):
        list(run_files([path], ReferenceEngine()))


def test_files_without_cases_are_refused_in_one_line(tmp_path: Path) -> None:
    texts = {"none.json": "", "header.jsonl": '{"header": true}', "broken.yaml": "a: [1\n b: 2"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(TranscriptError, match=r"no cases found|is not valid YAML") as raised:
            list(run_files([tmp_path / name], ReferenceEngine()))
        assert "\n" not in str(raised.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"absent\.json cannot be read"):
        list(run_files([tmp_path / "absent.json"], ReferenceEngine()))


def test_a_verdict_has_expected_and_actual_panes() -> None:
    changed = copy.deepcopy(VALID_CASE)
    changed["steps"][2]["expect"][0]["values"] = [1]
    line = verdict_of(changed).as_json()
    assert (line["id"], line["ok"]) == ("right", False)
    assert line["expected"][0] == [{"window": [0, 10], "values": [1], "early": True, "index": 0}]
    assert line["got"][0][0]["values"] == [1, 2]
    assert json.loads(json.dumps(line)) == line


def test_an_unexpected_pane_fails_the_case() -> None:
    changed = copy.deepcopy(VALID_CASE)
    del changed["steps"][4]
    verdict = verdict_of(changed)
    assert not verdict.is_ok
    assert [pane["timing"] for pane in verdict.actual[1]] == ["on_time"]


def test_panes_are_paired_by_any_subset_of_fields() -> None:
    changed = copy.deepcopy(VALID_CASE)
    changed["steps"] = [
        {"elements": [{"key": key, "value": 1, "ts": 1} for key in ("a", "a", "b", "b")]},
        {"expect": [{}, {"key": "a"}]},
        {"watermark": "inf"},
        {"expect": [{"timing": "on_time"}, {"key": "b", "timing": "on_time"}]},
    ]
    assert verdict_of(changed).is_ok


def test_many_equal_panes_are_paired() -> None:
    many = 1_500
    changed = copy.deepcopy(VALID_CASE)
    changed["steps"] = [
        {"elements": [{"key": number, "value": 1, "ts": 1} for number in range(many)]},
        {"watermark": "inf"},
        {"expect": [*({"timing": "on_time"} for _ in range(many - 1)), {"key": 0}]},
    ]
    assert verdict_of(changed).is_ok
    changed["steps"][2]["expect"][-1] = {"key": many}
    assert not verdict_of(changed).is_ok


def test_a_trigger_that_never_finishes_keeps_its_turn() -> None:
    for_ever = {"type": "repeatedly", "of": {"type": "after_count", "count": 2}}
    changed = change_case(trigger={"type": "after_each", "of": [for_ever, {"type": "after_watermark"}]})
    changed["steps"] = [*VALID_CASE["steps"][:3], {"watermark": 20}, {"expect": []}]
    assert verdict_of(changed).is_ok


def test_engine_specific_cases_and_expected_errors_are_judged(tmp_path: Path) -> None:
    broken = change_case(steps=[*VALID_CASE["steps"][:2]])
    said: list[CaseVerdict] = []
    informing = [change_case(engine_specific=True, steps=broken["steps"]), VALID_CASE]
    assert report_verdicts(run_cases(informing, ReferenceEngine()), said.append)
    assert [verdict.is_ok for verdict in said] == [False, True]
    assert said[0].as_json()["engine_specific"] is True
    assert verdict_of(broken | {"must_fail_with": "Unexpected output"}).is_ok
    assert not report_verdicts(run_cases([broken, VALID_CASE], ReferenceEngine()), said.append)


def test_an_unknown_field_is_named() -> None:
    changed = copy.deepcopy(VALID_CASE)
    changed["steps"][2]["expect"][0]["colour"] = "red"
    verdict = verdict_of(changed)
    assert verdict.is_ok
    assert verdict.as_json()["not_compared"] == ["colour"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": "fortnights"}, "unknown unit 'fortnights'"),
        ({"window": {"type": "hexagonal"}}, "no windows of type 'hexagonal'"),
        ({"window": {"type": "fixed"}}, "'fixed' needs size"),
        ({"window": {"type": "fixed", "size": 0}}, "above 0|not match the schema"),
        ({"trigger": {"type": "after_lunch"}}, "no trigger of type 'after_lunch'"),
        ({"trigger": {"type": "after_count"}}, "needs an integer in `count`"),
        ({"trigger": {"type": "after_any"}}, "needs a list of triggers"),
        ({"accumulation": "hoarding"}, "not match the schema"),
        ({"combine": "entropy"}, "unknown aggregate 'entropy'"),
        ({"steps": [{"watermark": "soon"}]}, "'soon' is not a time"),
        ({"steps": [{"elements": [{"value": "a", "ts": 1}]}], "combine": "sum"}, "sum needs numbers"),
        ({"steps": [{"elements": [{"value": "a", "ts": 1}, {"value": 1, "ts": 1}]}]}, "several types"),
        ({"steps": 3}, "not match the schema"),
        ({"steps": [3]}, "step 1 is 3; write one of elements"),
        ({"steps": [{"dance": 1}]}, "step 1 is {'dance': 1}; write one of elements"),
        ({"steps": [{"elements": 3}]}, "`elements` is 3; write a list of objects"),
        ({"steps": [{"elements": [{"ts": "inf"}]}]}, "'inf' is not a valid event time"),
        ({"steps": [{"elements": [{"ts": float("nan")}]}]}, "nan is not a time"),
        ({"window": None}, "`window` is None; write an object"),
        (
            {"window": {"type": "moving", "keep": {"type": "count", "n": 2}}},
            "'moving' needs a policy in `show`",
        ),
        ({"window": {"type": "fixed", "size": "inf"}}, "`size` is infinite"),
        ({"trigger": {"type": "repeatedly"}}, "'repeatedly' needs a trigger in `of`"),
        ({"final_pane": "maybe"}, "`final_pane` is 'maybe'; write one of never, when_changed, always"),
        ({"on_time_pane": "maybe"}, "`on_time_pane` is 'maybe'; write one of always"),
        ({"allowed_lateness": -1}, "allowed_lateness: -1000. Give a whole number"),
        ({"combin": "sum"}, "the case has an unknown field 'combin'. Did you mean 'combine'?"),
        ({"engine_specific": "false"}, "`engine_specific` is 'false'; write true or false"),
        ({"timestamp_combiner": "MIDDLE"}, "`timestamp_combiner` is 'MIDDLE'; write one of earliest"),
        ({"unit": 3}, "unknown unit 3; write one of ms"),
        ({"unit": " "}, "unknown unit ' '"),
        ({"steps": []}, "`steps` is \\[\\]; write a list of steps"),
        ({"steps": [{"watermark": 1, "expct": []}]}, "step 1 has an unknown field 'expct'"),
        (
            {"steps": [{"processing_time": "inf"}]},
            "step 1: `processing_time` is 'inf'; write a finite number",
        ),
        ({"steps": [{"watermark": 10**40}]}, "step 1: `watermark` is 1.*; write a time of at most 64 bits"),
        (
            {"steps": [{"elements": [{"vaule": 1}]}]},
            "unknown field 'vaule'. Did you mean 'value'",
        ),
        ({"steps": [{"elements": [{"value": [1]}]}]}, "`elements`.0..value is .1.; write a number"),
        ({"steps": [{"elements": [{"punctuation": "no"}]}]}, "`punctuation` is 'no'; write true or false"),
        ({"window": {"type": "fixed", "size": 10, "time": "sundial"}}, "is 'sundial'; write event or"),
        ({"window": {"type": ["fixed"]}}, "`window.type` is .'fixed'.; write one of fixed, sliding"),
        ({"window": {"type": "delta", "by": 1, "field": "speed"}}, "elements has no field 'speed'"),
        ({"window": {"type": "punctuation", "predicate": 3}}, "punctuation.predicate: 3. Write a condition"),
        ({"window": {"type": "punctuation", "value": [3]}}, "punctuation.value is .3.; write a number"),
        (
            {"trigger": {"type": "after_watermark", "earyl": "x"}},
            "unknown field 'earyl'. Did you mean 'early'",
        ),
        (
            {"trigger": {"type": "after_any", "of": [None]}},
            "'after_any' needs a list of triggers in `of`, such as",
        ),
        (
            {"trigger": {"type": "early_every_x_every_y"}},
            "no trigger of type 'early_every_x_every_y'; it has",
        ),
        ({"trigger": 3}, "a trigger is 3; write an object with a type"),
        ({"trigger": nest_triggers(60)}, "trigger: 61 nested triggers. Nest at most 50 triggers"),
        ({"trigger": nest_triggers(700)}, "the case is nested too deeply"),
    ],
)
def test_a_case_that_cannot_run_reports_why_and_others_run(change: dict[str, Any], message: str) -> None:
    broken, right = run_cases([change_case(**change), VALID_CASE], ReferenceEngine())
    assert right.is_ok
    assert not broken.is_ok
    with pytest.raises(TranscriptError, match=message):
        parse_case(change_case(**change))
    assert isinstance(broken.actual, dict)
    assert broken.actual["error"]


@pytest.mark.parametrize(
    ("kind", "expected", "message"),
    [
        ("expect", 3, "step 3, `expect` is 3; write a list of panes, such as"),
        ("expect", None, "`expect` is None; write a list of panes"),
        ("expect", {"values": [1]}, "write a list of panes"),
        ("expect", [3], "`expect`.0. is 3; write an object"),
        ("expect", [{"window": 3}], "`expect`.0..window is 3; write .start, end."),
        ("expect", [{"window": [1]}], "window is .1.; write .start, end."),
        ("expect", [{"window": {"start": 0}}], "write .start, end."),
        ("expect", [{"window": ["a", "b"]}], "write .start, end."),
        ("expect", [{}, {"values": 3}], "`expect`.1..values is 3; write a list of values"),
        ("expect", [{"values": "12"}], "values is '12'; write a list of values"),
        ("expect", [{"sum": "3"}], "sum is '3'; write a number or null"),
        ("expect", [{"timing": "sometimes"}], "timing is 'sometimes'; write one of early, on_time, late"),
        ("expect", [{"kind": "upsert"}], "kind is 'upsert'; write one of output, insert"),
        ("expect", [{"early": "false"}], "early is 'false'; write true or false"),
        ("expect", [{"index": "0"}], "index is '0'; write an integer"),
        ("expect", [{"timestamp": "x"}], "timestamp is 'x'; write a number or null"),
        ("expect", [{"timming": "early"}], "an unknown field 'timming'. Did you mean 'timing'?"),
        ("expect_all", 3, "`expect_all` is 3; write a list of panes"),
        ("expect_late", {"value": 1}, "`expect_late` is .*; write a list of records"),
        ("expect_late", [{"val": 9}], "a field 'val'; write key, value, timestamp"),
        ("state_sum", 3, "`state_sum` is 3; write an object"),
        ("state_sum", {"window": [0, 10]}, "write an object, such as"),
        ("state_sum", {"window": 3, "sum": 3}, "`state_sum`.window is 3; write .start, end."),
        ("state_windows", "x", "`state_windows` is 'x'; write the number of open windows"),
    ],
)
def test_an_invalid_expectation_is_named_by_its_path(kind: str, expected: Any, message: str) -> None:
    broken = change_case(steps=[*VALID_CASE["steps"][:2], {kind: expected}])
    with pytest.raises(TranscriptError, match=message):
        parse_case(broken)
    verdict = verdict_of(broken)
    assert (verdict.is_ok, bool(verdict.malformed)) == (False, True)


def test_a_valid_expectation_without_counterpart_fails_the_case() -> None:
    verdict = verdict_of(change_case(window={"type": "hexagonal"}))
    assert (verdict.is_ok, verdict.malformed) == (False, "")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("figures.json", '{\n "figures": [1]\n}', "the document has no cases"),
        ("three.json", '{"cases": 3}', "`cases` is not a list but 3"),
        (
            "comma.json",
            '{\n "cases": [\n {"id": 1}\n {"id": 2}]}',
            r"comma\.json, line 4, column 2 is not valid JSON",
        ),
        ("line.jsonl", '{"id": 1}\n{nope', r"line\.jsonl, line 2, column 2 is not valid JSON"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
        ("long.json", f'{{"cases": [{"9" * 5000}]}}', r"long\.json, line 1 is not valid JSON"),
        ("itself.yaml", "cases:\n - steps: &e [*e]", "an anchor refers to itself"),
    ],
)
def test_a_syntax_error_names_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TranscriptError, match=message):
        list(run_files([tmp_path / name], ReferenceEngine()))


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.just("inf"),
    st.just("x"),
    st.just([]),
    st.just({}),
    st.just([{}]),
)


@settings(deadline=None, max_examples=scale_examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_an_invalid_case_does_not_stop_others(data: st.DataObject) -> None:
    broken = copy.deepcopy(VALID_CASE)
    for _ in range(data.draw(st.integers(1, 3))):
        node: Any = broken
        while True:
            places = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not places:
                break
            place = data.draw(st.sampled_from(places))
            if isinstance(node[place], dict | list) and node[place] and data.draw(st.booleans()):
                node = node[place]
                continue
            if data.draw(st.booleans()):
                node[place] = copy.deepcopy(data.draw(anything))
            else:
                del node[place]
            break
    verdicts = list(run_cases([broken, VALID_CASE], ReferenceEngine()))
    assert verdicts[1].is_ok
    json.dumps(verdicts[0].as_json(), default=str)
