"""Suite files, and what is refused in them."""

from pathlib import Path

import pytest

from penstock.engine.plan.sources import Column
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.pipelines import catalog
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.sql_compiler import compile_row_check
from penstock.quality.expectations.stream_checks import add_topic_checks
from penstock.quality.expectations.suite import default_expectation_name, list_suites, load_suite

VALID_SUITE = """
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: temperature, min_value: -80, max_value: 80}
    meta: {action: quarantine, why: broken probes}
  - type: expect_column_values_to_be_in_set
    kwargs: {column: site, value_set: [site-0]}
    meta: {action: warn, name: sites}
"""


def write_suite(folder: Path, text: str, subject: str = "topics/sensors") -> Path:
    path = folder / f"{subject}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return folder


def test_a_suite_of_a_topic_adds_checks_to_its_pipelines(tmp_path: Path) -> None:
    plan = add_topic_checks(catalog.load_plan("sensor_minute"), write_suite(tmp_path, VALID_SUITE))
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


INVALID_SUITES = [
    ("expectations: [", "not valid YAML"),
    ("expected: []", "contains unknown keys: expected"),
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


@pytest.mark.parametrize(("text", "message"), INVALID_SUITES, ids=[message for _, message in INVALID_SUITES])
def test_an_invalid_suite_is_refused_with_its_location(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError, match=r"topics/sensors\.yaml") as refused:
        load_suite("topics/sensors", write_suite(tmp_path, text))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("batches: {by: year}", "Write {window: final}"),
        ("batches: {by: day, from: noon}", "Write {window: final}"),
        ("statistics: {every: 1 hour, sensitivity: .nan}", "a sensitivity above 0"),
        ("statistics: {every: 1 hour, sensitivity: .inf}", "a sensitivity above 0"),
        ("statistics: {}", "statistics: are {}"),
    ],
)
def test_invalid_batches_and_statistics_are_refused(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(SuiteError) as refused:
        load_suite(
            "latest/minute", write_suite(tmp_path, f"expectations: [{{type: a}}]\n{more}", "latest/minute")
        )
    assert message in str(refused.value)


def test_too_many_checks_are_refused_with_the_file(tmp_path: Path) -> None:
    expectation = (
        "{{type: expect_column_values_to_not_be_null, "
        "kwargs: {{column: id}}, meta: {{action: warn, name: n{}}}}}"
    )
    text = f"expectations: [{', '.join(map(expectation.format, range(61)))}]"
    with pytest.raises(
        SuiteError, match=r"sensors.yaml: the file: has 61 expectations. Give an input at most 60 checks"
    ):
        add_topic_checks(catalog.load_plan("sensor_minute"), write_suite(tmp_path, text))


def test_a_too_long_name_is_refused(tmp_path: Path) -> None:
    text = f"expectations: [{{type: a, meta: {{action: warn, name: {'a' * 151}}}}}]"
    with pytest.raises(SuiteError, match="at most 150 characters"):
        load_suite("topics/sensors", write_suite(tmp_path, text))


def test_an_action_in_a_table_suite_is_refused(tmp_path: Path) -> None:
    text = "expectations: [{type: a, meta: {action: warn}}]"
    with pytest.raises(SuiteError, match="Remove the action"):
        load_suite("latest/minute", write_suite(tmp_path, text, "latest/minute"))


def test_an_expectation_over_several_rows_is_refused_by_name_and_file(tmp_path: Path) -> None:
    mean = "expect_column_mean_to_be_between"
    text = f"expectations: [{{type: {mean}, kwargs: {{column: temperature}}, meta: {{action: warn}}}}]"
    with pytest.raises(SuiteError, match=r"sensors.yaml:1: temperature_mean_to_be_between: .* several rows"):
        add_topic_checks(catalog.load_plan("sensor_minute"), write_suite(tmp_path, text))


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
def test_an_unnamed_expectation_gets_a_name_from_its_arguments(
    kind: str, kwargs: dict[str, object], name: str
) -> None:
    assert default_expectation_name(kind, kwargs) == name


def test_every_shipped_suite_is_valid_and_has_a_subject() -> None:
    tables = {
        sink.path
        for name in catalog.pipeline_names()
        for stage in catalog.load_plan(name).stages
        for sink in stage.sinks
    }
    for subject in list_suites():
        suite = load_suite(subject)
        assert suite is not None
        assert all(expectation.why for expectation in suite.expectations), f"{subject} does not say why"
        assert load_library().build_suite(suite).name == subject
        if suite.topic is None:
            assert subject in tables
        else:
            contract = load_contract(suite.topic)
            columns = tuple(Column(f.name, f.parsed_type.spark_type, f.required) for f in contract.fields)
            assert [compile_row_check(expectation, columns).name for expectation in suite.expectations]
    topics = {subject.partition("/")[2] for subject in list_suites() if subject.startswith("topics/")}
    assert topics <= set(list_contract_names())


def test_an_expectation_unknown_to_the_library_is_refused(tmp_path: Path) -> None:
    for text, message in (
        ("expectations: [{type: expect_luck, kwargs: {}}]", "unknown expectation expect_luck"),
        (
            "expectations: [{type: expect_column_to_exist, kwargs: {colour: a}}]",
            "Great Expectations rejects it",
        ),
    ):
        write_suite(tmp_path, text, f"latest/{len(message)}")
        suite = load_suite(f"latest/{len(message)}", tmp_path)
        assert suite is not None
        with pytest.raises(SuiteError, match=message):
            load_library().build_suite(suite)


def test_all_problems_of_a_suite_are_reported_each_with_its_line(tmp_path: Path) -> None:
    text = """expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: devise}
    meta: {action: quarantine}
  - type: expect_column_values_to_not_be_null
    kwargs: {column: site}
    mta: {action: warn}
  - {type: expect_column_values_to_not_be_null, kwargs: {column: id}, meta: {action: quarantin}}
"""
    folder = write_suite(tmp_path, text)
    file = folder / "topics/sensors.yaml"
    meta_fix = "Did you mean 'meta'? Its keys are: type, kwargs, meta."
    action_fix = "Did you mean 'quarantine'? Write one of: warn, quarantine, stop."
    with pytest.raises(SuiteError) as refused:
        load_suite("topics/sensors", folder)
    assert str(refused.value).splitlines() == [
        f"{file}:5: expectation 2: contains unknown keys: mta. {meta_fix}",
        f"{file}:8: id_values_to_not_be_null: action is 'quarantin'. {action_fix}",
    ]
    write_suite(
        tmp_path, text.replace("mta:", "meta:").replace("quarantin}", "warn}").replace("site", "sight")
    )
    with pytest.raises(SuiteError) as refused:
        add_topic_checks(catalog.load_plan("sensor_minute"), folder)
    assert [line.partition(". ")[0] for line in str(refused.value).splitlines()] == [
        f"{file}:2: devise_values_to_not_be_null: unknown field 'devise'",
        f"{file}:5: sight_values_to_not_be_null: unknown field 'sight'",
    ]
    assert "Did you mean 'device'?" in str(refused.value)
