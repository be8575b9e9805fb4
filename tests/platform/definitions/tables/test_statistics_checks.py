"""Statistics of tables in Dagster."""

from dagster import AssetKey, AssetSpec, Definitions, MetadataValue

from penstock.platform.definitions.tables.statistics_checks import (
    NO_SUDDEN_CHANGE_CHECK,
    STATISTICS_JOB,
    build_statistics_definitions,
)
from penstock.platform.services.statistics import TableStatistics
from penstock.quality.expectations.suite import Suite
from penstock.quality.statistics.change_detection import SuddenChange
from penstock.quality.statistics.series import StatisticsPoint

SUITE = Suite("latest/minutes", ())
KEY = AssetKey(["latest", "minutes"])
WINDOWS = [StatisticsPoint(0, {"records": 100.0, "null_mean": 0.5})]


def test_figures_are_observations_and_sudden_changes_fail_the_check(instance) -> None:
    change = SuddenChange("records", 0, 100.0, 10.0, 9.0)
    statistics = TableStatistics(SUITE.subject, WINDOWS, [StatisticsPoint(0, {"share_late": 0.1})], [change])
    defs = Definitions.merge(
        Definitions(assets=[AssetSpec(KEY)]),
        build_statistics_definitions(
            [SUITE],
            lambda _about: statistics,
            lambda statistics: {"plots": MetadataValue.url(f"http://x/{statistics.subject}")},
        ),
    )
    result = defs.resolve_job_def(STATISTICS_JOB).execute_in_process(instance=instance)
    (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.check_name, evaluation.passed, evaluation.description) == (
        NO_SUDDEN_CHANGE_CHECK,
        False,
        str(change),
    )
    assert evaluation.metadata["plots"].value == "http://x/latest/minutes"
    (observation,) = instance.fetch_observations(KEY, limit=5).records
    figures = {name: value.value for name, value in observation.asset_observation.metadata.items()}
    assert figures == {"records": 100.0, "null_mean": 0.5, "share_late": 0.1}


def test_without_a_suite_there_is_no_job() -> None:
    assert not build_statistics_definitions([], lambda subject: TableStatistics(subject, [], [], [])).jobs
