"""`penstock check`: what is expected of tables, and whether it is so."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table

if TYPE_CHECKING:
    from penstock.quality.expectations.outcome import Met, Outcome


def _tables(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.quality.expectations.suite import suite_names

    return [name for name in suite_names() if name.startswith(typed) and not name.startswith("topics/")]


@click.command(
    name="check",
    epilog=example("penstock check", "penstock check latest/sensor_minute", "penstock check --json"),
)
@click.argument("tables", metavar="[FOLDER/TABLE]...", nargs=-1, shell_complete=_tables)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(tables: Sequence[str], as_json: bool) -> int:
    """Check what is expected of tables, in the windows that became final since the last time.

    Without names, every table that has a suite is checked. Each batch is checked once; what came of it is kept, and
    shown on a page. Ends with 1 where an expectation is not met, or a suite cannot be used.
    """
    from penstock.platform.expectations import all_suites, check_tables, newest, publish_page, table_suites

    settings = current_settings()
    wanted = tuple(tables) or (*table_suites(), *all_suites().broken)
    with Steps().step(f"{', '.join(wanted)} checked") as tell:
        checked = check_tables(settings, wanted, tell)
    refused = {about: str(came) for about, came in checked.items() if isinstance(came, Exception)}
    found = {
        about: came or [last for last in [newest(settings, about)] if last]
        for about, came in checked.items()
        if not isinstance(came, Exception)
    }
    if as_json:
        told: dict[str, Any] = {about: [asdict(one) for one in outcomes] for about, outcomes in found.items()}
        print_json({**told, **{about: {"problem": problem} for about, problem in refused.items()}})
    else:
        _show(found)
        for about, problem in refused.items():
            click.echo(f"{about} was not checked: {problem}", err=True)
        click.echo(f"the page: {publish_page(settings)}")
    right = not refused and all(one.passed for outcomes in found.values() for one in outcomes)
    return 0 if right else 1


def _show(found: "dict[str, list[Outcome]]") -> None:
    rows: list[tuple[Any, ...]] = [
        (about, outcome.batch.label, one.name, "met" if one.passed else "not met", _count(one))
        for about, outcomes in found.items()
        for outcome in outcomes
        for one in outcome.met
    ]
    print_table(("table", "batch", "expected", "", ""), rows, empty="no window is final yet")


def _count(one: "Met") -> str:
    if one.problem is not None:
        return one.problem
    if one.unexpected is None:
        return "" if one.observed is None else str(one.observed)
    return f"{one.unexpected:,} of {one.checked or 0:,} rows"
