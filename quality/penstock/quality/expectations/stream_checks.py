"""Adds the expectations of topic suites to pipelines as checks of the records that they read."""

from dataclasses import replace
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan
from penstock.quality.errors import NotCheckableInStreamError, SuiteError
from penstock.quality.expectations.sql_compiler import compile_row_check
from penstock.quality.expectations.suite import SUITES_FOLDER, TOPICS_FOLDER, load_suite
from penstock.quality.expectations.suite_problems import SuiteProblemCollector


def add_topic_checks(plan: Plan, folder: Path = SUITES_FOLDER) -> Plan:
    """Return a copy of the plan whose sources check records against the suites of their topics.

    Raises SuiteError if a suite contains an expectation that cannot be checked record by record.
    """
    return replace(plan, sources=tuple(_add_source_checks(source, folder) for source in plan.sources))


def _add_source_checks(source: PlanSource, folder: Path) -> PlanSource:
    suite = load_suite(f"{TOPICS_FOLDER}/{topic_of(source)}", folder)
    if suite is None:
        return source
    checks = []
    collector = SuiteProblemCollector()
    for expectation in suite.expectations:
        location = display_path(suite.file, expectation.line)
        with collector.collect():
            try:
                checks.append(compile_row_check(expectation, source.columns))
            except NotCheckableInStreamError as problem:
                raise SuiteError(location, problem.expectation, problem.finding, problem.fix) from problem
    collector.raise_problems()
    try:
        return replace(source, checks=tuple(checks))
    except DefinitionError as problem:
        raise SuiteError(
            suite.file, "the file", f"has {problem.problem} expectations", problem.fix
        ) from problem
