"""Adds the expectations of topic suites to pipelines as checks of the records that they read."""

from dataclasses import replace
from pathlib import Path

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan
from penstock.quality.errors import NotCheckableInStreamError, SuiteError
from penstock.quality.expectations.sql_compiler import compile_row_check
from penstock.quality.expectations.suite import SUITES_FOLDER, TOPICS_FOLDER, load_suite


def add_topic_checks(plan: Plan, folder: Path = SUITES_FOLDER) -> Plan:
    """Return a copy of the plan whose sources check records against the suites of their topics.

    Raises SuiteError if a suite contains an expectation that cannot be checked record by record.
    """
    return replace(plan, sources=tuple(_add_source_checks(source, folder) for source in plan.sources))


def _add_source_checks(source: PlanSource, folder: Path) -> PlanSource:
    suite = load_suite(f"{TOPICS_FOLDER}/{topic_of(source)}", folder)
    if suite is None:
        return source
    try:
        checks = tuple(compile_row_check(expectation, source.columns) for expectation in suite.expectations)
    except NotCheckableInStreamError as problem:
        raise SuiteError(suite.file, problem.expectation, problem.finding, problem.fix) from problem
    try:
        return replace(source, checks=checks)
    except DefinitionError as problem:
        raise SuiteError(
            suite.file, "the file", f"has {problem.problem} expectations", problem.fix
        ) from problem
