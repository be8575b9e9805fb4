"""`penstock statistics`: show a table's metrics by interval, and sudden changes."""

from collections.abc import Iterable

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_table

SECTION: Section = "Results and quality"


def _list_tables() -> Iterable[str]:
    from penstock.platform.services.statistics import list_measured_suites

    return [suite.subject for suite in list_measured_suites()]


@click.command(
    name="statistics",
    short_help="Show a table's metrics by interval, and sudden changes",
    epilog=format_examples(
        "penstock statistics latest/sensor_minute", "penstock statistics latest/sensor_minute --json"
    ),
)
@click.argument("table", metavar="FOLDER/TABLE", shell_complete=complete_names(_list_tables))
@click.option(
    "--limit", default=24, show_default=True, type=click.IntRange(min=1), help="Number of intervals."
)
@json_option
def command(table: str, limit: int, as_json: bool) -> int:
    """Show a table's metrics by interval: windows, records, keys, null shares, and record outcomes.

    The suite of the table defines the length of an interval and the sensitivity to changes. The exit code is 1 if
    the last interval differs more than that from the earlier ones.
    """
    from penstock.platform.services.statistics import measure_table, publish_statistics
    from penstock.quality.statistics.change_detection import MAX_PREVIOUS_INTERVALS
    from penstock.quality.statistics.plots import format_time

    settings = current_settings()
    statistics = measure_table(settings, table, max(limit, MAX_PREVIOUS_INTERVALS + 1))
    if as_json:
        print_json(statistics.as_json())
        return 1 if statistics.changes else 0
    for points in (statistics.window_points, statistics.fate_points):
        names = list(points[-1].figures) if points else []
        rows = [
            [format_time(point.at_ms), *(f"{point.figures[name]:g}" for name in names)]
            for point in points[-limit:]
        ]
        print_table(["from", *names], rows, empty="no complete interval yet")
        click.echo()
    for change in statistics.changes:
        click.secho(f"sudden change: {change}", fg="red")
    click.echo(f"plots: {publish_statistics(settings, statistics)}")
    return 1 if statistics.changes else 0
