"""`penstock check`: validate tables against their expectation suites."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.quality.expectations.check_results import BatchCheckResult, ExpectationResult

SECTION: Section = "Results and quality"


def _list_tables() -> Iterable[str]:
    from penstock.quality.expectations.suite import list_suites

    return [name for name in list_suites() if not name.startswith("topics/")]


@click.command(
    name="check",
    short_help="Check tables against their expectation suites",
    epilog=format_examples("penstock check", "penstock check latest/sensor_minute", "penstock check --json"),
)
@click.argument("tables", metavar="[FOLDER/TABLE]...", nargs=-1, shell_complete=complete_names(_list_tables))
@json_option
def command(tables: Sequence[str], as_json: bool) -> int:
    """Check tables against their expectation suites, for windows that became final since the last check.

    Without a name, all tables with a suite are checked. Each batch is checked once. The results are stored and
    published as an HTML page. The exit code is 1 if an expectation is not met or a suite is invalid.
    """
    from penstock.platform.services.expectations import (
        check_tables,
        find_newest_result,
        load_all_suites,
        load_table_suites,
        publish_suites_page,
    )

    settings = current_settings()
    subjects = tuple(tables) or (*load_table_suites(), *load_all_suites().errors_by_subject)
    with StepPrinter().step(f"check {', '.join(subjects)}") as report_progress:
        outcomes = check_tables(settings, subjects, report_progress)
    errors = {
        subject: str(outcome) for subject, outcome in outcomes.items() if isinstance(outcome, Exception)
    }
    results_by_subject = {
        subject: outcome
        or [newest_result for newest_result in [find_newest_result(settings, subject)] if newest_result]
        for subject, outcome in outcomes.items()
        if not isinstance(outcome, Exception)
    }
    if as_json:
        output: dict[str, Any] = {
            subject: [asdict(result) for result in results] for subject, results in results_by_subject.items()
        }
        print_json({**output, **{subject: {"error": message} for subject, message in errors.items()}})
    else:
        _print_results(results_by_subject)
        for subject, message in errors.items():
            click.echo(f"{subject} not checked: {message}", err=True)
        click.echo(f"report: {publish_suites_page(settings)}")
    is_all_met = not errors and all(
        result.passed for results in results_by_subject.values() for result in results
    )
    return 0 if is_all_met else 1


def _print_results(results_by_subject: "dict[str, list[BatchCheckResult]]") -> None:
    rows: list[tuple[Any, ...]] = [
        (
            subject,
            outcome.batch.label,
            result.name,
            "met" if result.passed else "not met",
            _format_unexpected(result),
        )
        for subject, batch_results in results_by_subject.items()
        for outcome in batch_results
        for result in outcome.results
    ]
    print_table(("table", "batch", "expectation", "", ""), rows, empty="no window is final yet")


def _format_unexpected(result: "ExpectationResult") -> str:
    if result.problem is not None:
        return result.problem
    if result.unexpected is None:
        return "" if result.observed is None else str(result.observed)
    return f"{result.unexpected:,} of {result.checked or 0:,} rows"
