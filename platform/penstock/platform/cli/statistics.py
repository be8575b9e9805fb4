"""`penstock statistics`: how much there is of a table in each stretch of time, and what changed suddenly."""

from datetime import UTC, datetime

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table


def _tables(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.platform.statistics import measured

    return [suite.about for suite in measured() if suite.about.startswith(typed)]


@click.command(
    name="statistics",
    epilog=example(
        "penstock statistics latest/sensor_minute", "penstock statistics latest/sensor_minute --json"
    ),
)
@click.argument("table", metavar="FOLDER/TABLE", shell_complete=_tables)
@click.option(
    "--limit", default=24, show_default=True, type=click.IntRange(min=1), help="How many stretches."
)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(table: str, limit: int, as_json: bool) -> int:
    """Show a table's figures over time: windows, records, keys, shares of nulls, and the fates of its records.

    Its suite says how long a stretch is, and how unlike the others the last one may be. Ends with 1 where it is
    more unlike than that.
    """
    from penstock.platform.statistics import publish_statistics, statistics_of
    from penstock.quality.statistics.change import LOOKED_BACK

    settings = current_settings()
    found = statistics_of(settings, table, max(limit, LOOKED_BACK + 1))
    if as_json:
        print_json(found.as_json())
        return 1 if found.changes else 0
    for points in (found.windows, found.fates):
        names = list(points[-1].figures) if points else []
        rows = [
            [_time(point.at_ms), *(f"{point.figures[name]:g}" for name in names)] for point in points[-limit:]
        ]
        print_table(["from", *names], rows, empty="no stretch is over yet")
        click.echo()
    for change in found.changes:
        click.secho(f"sudden: {change}", fg="red")
    click.echo(f"plotted in {publish_statistics(settings, found)}")
    return 1 if found.changes else 0


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
