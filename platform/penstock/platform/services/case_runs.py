"""Runs of conformance cases, and of cases that name a pipeline."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.conformance import CaseVerdict, ConformanceEngine, LocatedCase, ReferenceEngine, run_cases
from penstock.core.progress import ProgressReporter
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.settings import Settings
from penstock.testing import BackendName
from penstock.testing.pipeline_case import is_pipeline_case, run_pipeline_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_located_cases(
    settings: Settings, cases: Sequence[LocatedCase], backend: BackendName, report_progress: ProgressReporter
) -> Iterator[CaseVerdict]:
    """Yield the verdict of each case, in order. Spark starts when the first case needs it."""
    with CaseSpark(settings, report_progress) as spark:
        conformance = iter(
            run_cases(
                [each.node for each in cases if not is_pipeline_case(each.node)], _open_engine(backend, spark)
            )
        )
        for case in cases:
            if is_pipeline_case(case.node):
                yield run_pipeline_case(case.node, backend, spark.open)
            else:
                yield next(conformance)


class CaseSpark(ExitStack):
    """The Spark session of a run of cases, which starts when it is needed."""

    def __init__(self, settings: Settings, report_progress: ProgressReporter) -> None:
        super().__init__()
        self._settings = settings
        self._report_progress = report_progress

    def open(self) -> "SparkSession":
        """Return the session."""
        return self._session

    @cached_property
    def _session(self) -> "SparkSession":
        return self.enter_context(open_command_spark(self._settings, "transcripts", self._report_progress))


def _open_engine(backend: BackendName, spark: CaseSpark) -> ConformanceEngine:
    if backend == "reference":
        return ReferenceEngine()
    from penstock.conformance.on_spark import SparkEngine

    return SparkEngine(spark.open())
