"""Suites of topics as checks of the records that pipelines read: nobody writes an expectation a second time."""

from dataclasses import replace
from pathlib import Path

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan import Plan, Source
from penstock.quality.errors import NotInStreamError, SuiteError
from penstock.quality.expectations.compile import row_check
from penstock.quality.expectations.suite import FOLDER, TOPICS, load_suite


def with_checks(plan: Plan, folder: Path = FOLDER) -> Plan:
    """Return a pipeline whose inputs are checked by the suites of their topics.

    Raises SuiteError where a suite holds what no single record can be asked.
    """
    return replace(plan, sources=tuple(_checked(source, folder) for source in plan.sources))


def _checked(source: Source, folder: Path) -> Source:
    suite = load_suite(f"{TOPICS}/{topic_of(source)}", folder)
    if suite is None:
        return source
    try:
        checks = tuple(row_check(one, source.columns) for one in suite.expectations)
    except NotInStreamError as problem:
        raise SuiteError(suite.file, problem.expectation, problem.found, problem.fix) from problem
    try:
        return replace(source, checks=checks)
    except DefinitionError as problem:
        raise SuiteError(
            suite.file, "the file", f"it has {problem.found} expectations", problem.fix
        ) from problem
