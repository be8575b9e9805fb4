"""Suites as files: what they may say, what is refused, and what becomes of them in a pipeline."""

from pathlib import Path

import pytest

from penstock.engine.plan.sources import Column
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.ingestion.contracts.field_types import to_spark_type
from penstock.pipelines import catalog
from penstock.quality.errors import NotCheckableInStreamError, SuiteError
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.sql_compiler import COMPILERS, compile_row_check, compile_unexpected
from penstock.quality.expectations.stream_checks import add_topic_checks
from penstock.quality.expectations.suite import Expectation, default_expectation_name, list_suites, load_suite

COLUMNS = {"name": "STRING", "level": "DOUBLE", "count": "BIGINT", "on": "BOOLEAN", "tags": "ARRAY<STRING>"}
GOOD = """
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: temperature, min_value: -80, max_value: 80}
    meta: {action: quarantine, why: broken probes}
  - type: expect_column_values_to_be_in_set
    kwargs: {column: site, value_set: [site-0]}
    meta: {action: warn, name: sites}
"""


def written(folder: Path, text: str, about: str = "topics/sensors") -> Path:
    path = folder / f"{about}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return folder


def test_a_suite_of_a_topic_becomes_the_checks_of_every_pipeline_that_reads_it(tmp_path: Path) -> None:
    plan = add_topic_checks(catalog.load_plan("sensor_minute"), written(tmp_path, GOOD))
    (source,) = plan.sources
    assert [(check.name, check.action) for check in source.checks] == [
        ("temperature_values_to_be_between", "quarantine"),
        ("sites", "warn"),
    ]
    assert source.checks[0].violation_sql == (
        "`temperature` IS NOT NULL AND NOT (`temperature` >= -80 AND `temperature` <= 80)"
    )
    assert add_topic_checks(catalog.load_plan("sensor_minute"), tmp_path / "none") == catalog.load_plan(
        "sensor_minute"
    )


WRONG = [
    ("expectations: [", "not valid YAML"),
    ("expected: []", "contains expected"),
    ("expectations: [{kwargs: {}}]", "expectation 1: contains kwargs"),
    ("expectations: [{type: expect_column_to_exist, kwargs: {column: a}}]", "has no action"),
    ("expectations: [{type: expect_x, meta: {action: explode}}]", "action is 'explode'"),
    ("expectations: [{type: expect_x, meta: {action: warn, name: A b}}]", "name is 'A b'"),
    (
        "expectations: [{type: a, meta: {action: warn}}, {type: a, meta: {action: stop}}]",
        "two expectations have",
    ),
    ("{expectations: {type: a}}", "expectations: are {'type': 'a'}"),
    ("expectations: []", "expectations: are none"),
    ("expectations:", "expectations: are none"),
    ("{expectations: [{type: a, meta: {action: warn}}], batches: {by: day}}", "Remove batches"),
    (
        "expectations: [{type: a, meta: {action: warn}}]\nexpectations: []",
        "duplicate key 'expectations', at line 2",
    ),
    ("expectations: [{type: a, kwargs: {column: b, column: c}}]", "duplicate key 'column', at line 1"),
    ("{expectations: [{type: a, kwargs: 5}]}", "kwargs is 5"),
    ("{expectations: [{type: a, meta: loud}]}", "meta is 'loud'"),
    ("{expectations: [{type: a, kwargs: {column_list: 5}}]}", "has no action"),
    ("since: 2026-99-99", "cannot be read"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_suite_that_cannot_be_used_says_what_is_wrong_and_where(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(SuiteError, match=r"topics/sensors\.yaml") as refused:
        load_suite("topics/sensors", written(tmp_path, text))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("batches: {by: year}", "Write {window: final}"),
        ("batches: {by: day, from: noon}", "Write {window: final}"),
        ("statistics: {every: 1 hour, sensitivity: .nan}", "a sensitivity above 0"),
        ("statistics: {every: 1 hour, sensitivity: .inf}", "a sensitivity above 0"),
        ("statistics: {}", "statistics: are {}"),
    ],
)
def test_what_a_table_is_cut_and_measured_by_must_be_known(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(SuiteError) as refused:
        load_suite(
            "latest/minute", written(tmp_path, f"expectations: [{{type: a}}]\n{more}", "latest/minute")
        )
    assert said in str(refused.value)


def test_more_checks_than_an_input_may_have_are_refused_with_the_file(tmp_path: Path) -> None:
    one = "{{type: expect_column_values_to_not_be_null, kwargs: {{column: id}}, meta: {{action: warn, name: n{}}}}}"
    text = f"expectations: [{', '.join(map(one.format, range(61)))}]"
    with pytest.raises(
        SuiteError, match=r"sensors.yaml: the file: has 61 expectations. Give an input at most 60 checks"
    ):
        add_topic_checks(catalog.load_plan("sensor_minute"), written(tmp_path, text))


def test_an_expectation_that_is_written_almost_as_one_that_can_be_compiled_is_told_which() -> None:
    one = Expectation("expect_column_values_to_be_betwen", {"column": "level", "min_value": 0}, "n", "warn")
    with pytest.raises(NotCheckableInStreamError, match="Did you mean expect_column_values_to_be_between"):
        compile_unexpected(one, COLUMNS)


def test_a_name_that_no_file_could_have_is_refused(tmp_path: Path) -> None:
    text = f"expectations: [{{type: a, meta: {{action: warn, name: {'a' * 151}}}}}]"
    with pytest.raises(SuiteError, match="at most 150 characters"):
        load_suite("topics/sensors", written(tmp_path, text))


def test_an_action_for_a_table_is_refused(tmp_path: Path) -> None:
    text = "expectations: [{type: a, meta: {action: warn}}]"
    with pytest.raises(SuiteError, match="Remove the action"):
        load_suite("latest/minute", written(tmp_path, text, "latest/minute"))


def test_what_cannot_be_compiled_is_refused_by_name_and_file(tmp_path: Path) -> None:
    mean = "expect_column_mean_to_be_between"
    text = f"expectations: [{{type: {mean}, kwargs: {{column: temperature}}, meta: {{action: warn}}}}]"
    with pytest.raises(SuiteError, match=r"sensors.yaml: temperature_mean_to_be_between: .* several rows"):
        add_topic_checks(catalog.load_plan("sensor_minute"), written(tmp_path, text))


LEVEL = {"column": "level"}
PAIR = {"column_A": "count", "column_B": "level"}
REFUSED = [
    ("column_values_to_be_unique", {"column": "name"}, "needs several rows"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "mostly": 0.9}, "mostly needs several"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "row_condition": "on"}, "row_condition"),
    ("column_values_to_be_between", {"column": "gone", "min_value": 0}, "unknown field 'gone'"),
    ("column_values_to_be_between", LEVEL, "min_value and max_value are both missing"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 2, "max_value": 1}, "is above"),
    ("column_values_to_be_between", {"column": "name", "min_value": "a"}, "Use a numeric field"),
    ("column_values_to_be_between", {**LEVEL, "min_value": "2"}, "cannot be compared with DOUBLE"),
    ("column_values_to_be_between", {"column": "on", "min_value": 2}, "is BOOLEAN"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "parse": True}, "parse is not supported"),
    ("column_values_to_be_in_set", {"column": "count", "value_set": ["a"]}, "cannot be compared with"),
    ("column_values_to_be_in_set", {"column": "name", "value_set": []}, "value_set is []"),
    ("column_values_to_match_regex", {**LEVEL, "regex": "a"}, "is DOUBLE"),
    ("column_value_lengths_to_equal", {"column": "tags", "value": 2}, "is ARRAY<STRING>"),
    ("column_pair_values_to_be_equal", {"column_A": "name", "column_B": "level"}, "is STRING and"),
    ("column_pair_values_to_be_equal", {**PAIR, "ignore_row_if": "x"}, "ignore_row_if is 'x'"),
    ("column_pair_values_a_to_be_greater_than_b", {**PAIR, "or_equal": "no"}, "or_equal is 'no'"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "strict_min": "no"}, "strict_min is 'no'"),
    ("column_values_to_be_between", {"column": ["level"], "min_value": 0}, "unknown field ['level']"),
    ("column_values_to_be_between", {"column": "count", "max_value": 2**53}, "compares as DOUBLE"),
    ("column_value_lengths_to_be_between", {"column": "name", "min_value": "1"}, "min_value is '1'"),
    ("column_value_lengths_to_be_between", {"column": "name", "max_value": 1.5}, "max_value is 1.5"),
    ("column_value_lengths_to_be_between", {"column": "name", "max_value": True}, "max_value is True"),
    ("column_value_lengths_to_equal", {"column": "name", "value": 1.5}, "value is 1.5"),
    ("column_values_to_match_regex_list", {"column": "name", "regex_list": "^a"}, "regex_list is '^a'"),
    ("column_values_to_not_match_regex_list", {"column": "name", "regex_list": [1]}, "regex_list is [1]"),
    ("column_values_to_match_like_pattern_list", {"column": "name", "like_pattern_list": "a%"}, "is 'a%'"),
    ("column_values_to_match_regex", {"column": "name", "regex": "(a"}, "'(a' is invalid: unclosed ("),
    ("column_values_to_match_regex_list", {"column": "name", "regex_list": ["a", "[b"]}, "unclosed ["),
]


@pytest.mark.parametrize(("kind", "kwargs", "said"), REFUSED, ids=[f"{k}-{said}" for k, _, said in REFUSED])
def test_what_would_not_be_the_same_or_not_safe_row_by_row_is_refused(
    kind: str, kwargs: dict[str, object], said: str
) -> None:
    with pytest.raises(NotCheckableInStreamError) as refused:
        compile_unexpected(Expectation(f"expect_{kind}", kwargs, "named", "warn"), COLUMNS)
    assert "named" in str(refused.value)
    assert said in str(refused.value)


def test_text_in_an_expression_cannot_leave_it() -> None:
    kwargs = {"column": "name", "regex": r"^\d'; DROP"}
    one = Expectation("expect_column_values_to_match_regex", kwargs, "n", "warn")
    assert compile_unexpected(one, COLUMNS) == r"`name` IS NOT NULL AND NOT (`name` RLIKE '^\\d\'; DROP')"


def test_what_looks_like_a_variable_of_spark_stays_a_text() -> None:
    kwargs = {"column": "name", "value_set": ["${env:HOME}"]}
    one = Expectation("expect_column_values_to_be_in_set", kwargs, "n", "warn")
    assert compile_unexpected(one, COLUMNS).endswith(r"NOT (`name` IN ('\u0024{env:HOME}'))")


@pytest.mark.parametrize(
    ("kind", "kwargs", "name"),
    [
        ("expect_column_values_to_be_between", {"column": "Level"}, "level_values_to_be_between"),
        (
            "expect_column_pair_values_to_be_equal",
            {"column_A": "a", "column_B": "b"},
            "a_b_values_to_be_equal",
        ),
        ("expect_compound_columns_to_be_unique", {"column_list": ["a", "b"]}, "a_b_to_be_unique"),
        ("expect_table_row_count_to_be_between", {}, "row_count_to_be_between"),
    ],
)
def test_an_expectation_without_a_name_is_called_by_what_it_says(
    kind: str, kwargs: dict[str, object], name: str
) -> None:
    assert default_expectation_name(kind, kwargs) == name


def test_every_shipped_suite_is_about_something_and_can_be_used() -> None:
    tables = {
        sink.path
        for name in catalog.pipeline_names()
        for stage in catalog.load_plan(name).stages
        for sink in stage.sinks
    }
    for about in list_suites():
        suite = load_suite(about)
        assert suite is not None
        assert all(one.why for one in suite.expectations), f"{about} does not say why"
        assert load_library().build_suite(suite).name == about
        if suite.topic is None:
            assert about in tables
        else:
            contract = load_contract(suite.topic)
            columns = tuple(Column(f.name, to_spark_type(f.parsed_type), f.required) for f in contract.fields)
            assert [compile_row_check(one, columns).name for one in suite.expectations]
    topics = {about.partition("/")[2] for about in list_suites() if about.startswith("topics/")}
    assert topics <= set(list_contract_names())


def test_what_is_compiled_is_what_the_library_calls_so() -> None:
    for kind in COMPILERS:
        assert load_library().find_expectation(kind) is not None


def test_what_the_library_does_not_know_or_take_is_refused_by_name(tmp_path: Path) -> None:
    for text, said in (
        ("expectations: [{type: expect_luck, kwargs: {}}]", "unknown expectation expect_luck"),
        (
            "expectations: [{type: expect_column_to_exist, kwargs: {colour: a}}]",
            "Great Expectations rejects it",
        ),
    ):
        written(tmp_path, text, f"latest/{len(said)}")
        suite = load_suite(f"latest/{len(said)}", tmp_path)
        assert suite is not None
        with pytest.raises(SuiteError, match=said):
            load_library().build_suite(suite)
