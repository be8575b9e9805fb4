"""`penstock demo`: run a shipped pipeline and draw its panes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import cli_command, format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter

if TYPE_CHECKING:
    from penstock.platform.demo.gallery import FinishedDemo

SECTION: Section = "Pipelines"

EXAMPLES = format_examples(
    "penstock demo --list",
    "penstock demo word_count",
    "penstock demo --all --out pipelines/docs/gallery",
)

STARTS_OWN_BROKER = (
    "A demonstration starts its own broker and Spark, and stops both at the end. "
    "It takes about a minute, and a few on a busy machine."
)


def _list_pipelines() -> Iterable[str]:
    from penstock.pipelines import catalog

    return catalog.pipeline_names()


@click.command(name="demo", short_help="Run a shipped pipeline and draw its panes", epilog=EXAMPLES)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_names(_list_pipelines))
@click.option("--list", "listing", is_flag=True, help="List the demonstrations; run nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Run every pipeline, and write a page with all diagrams."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for pages and diagrams. Default: .penstock/demo/NAME.",
)
@json_option
def command(names: tuple[str, ...], listing: bool, everything: bool, out: Path | None, as_json: bool) -> None:
    """Run a shipped pipeline on generated input, draw its panes, and print its result.

    The command starts its own broker and stops it at the end; a running stack is not affected. The input drives
    the clock, so minutes take seconds, and the same seed gives the same diagram.
    """
    if listing:
        _list_demos(as_json)
        return
    if bool(names) == everything:
        raise click.UsageError("name a pipeline or use --all; `penstock demo --list` lists the pipelines")
    from penstock.pipelines import catalog
    from penstock.platform.demo.gallery import render_index, run_demos

    names = catalog.pipeline_names() if everything else names
    click.echo(STARTS_OWN_BROKER, err=True)
    finished_demos_json = []
    for finished_demo in run_demos(current_settings(), names, out, StepPrinter().step):
        if as_json:
            finished_demos_json.append(_demo_as_json(finished_demo))
        elif not everything:
            _print_demo(finished_demo)
    if everything and out is not None:
        (out / "README.md").write_text(render_index(names), "utf-8")
        click.echo(f"gallery: {out / 'README.md'}", err=as_json)
    if as_json:
        print_json(finished_demos_json)


def _list_demos(as_json: bool) -> None:
    from penstock.pipelines import catalog

    rows = [
        (
            name,
            ", ".join(source.name for source in catalog.load_plan(name).sources),
            catalog.read_description(name).partition("\n\n")[0],
        )
        for name in catalog.pipeline_names()
    ]
    if as_json:
        print_json([dict(zip(("pipeline", "reads", "description"), row, strict=True)) for row in rows])
    else:
        print_table(("name", "reads", "description"), rows)


def _print_demo(finished_demo: "FinishedDemo") -> None:
    from penstock.platform.demo.pipeline_page import describe_accounts, format_cell, select_newest_rows

    columns, rows = select_newest_rows(finished_demo.result)
    print_table(columns, [[format_cell(value) for value in row] for row in rows], empty="no rows")
    click.echo(describe_accounts(finished_demo.result))
    unmet = [check for check in finished_demo.result.table_checks if check.unexpected_rows]
    click.echo(
        f"Expectations checked: {len(finished_demo.result.table_checks)}, not met: {len(unmet) or 'none'}."
    )
    click.echo(f"diagram: {finished_demo.picture}")
    click.echo(f"page:    {finished_demo.page}")
    click.echo(f"tables:  PENSTOCK_WAREHOUSE={finished_demo.result.warehouse} {cli_command()} table list")


def _demo_as_json(finished_demo: "FinishedDemo") -> dict[str, object]:
    from penstock.platform.demo.pipeline_page import select_newest_rows

    columns, rows = select_newest_rows(finished_demo.result)
    return {
        "pipeline": finished_demo.result.plan.name,
        "picture": str(finished_demo.picture),
        "page": str(finished_demo.page),
        "warehouse": str(finished_demo.result.warehouse),
        "expectations": [
            {
                "table": check.table,
                "expectation": check.expectation.name,
                "rows": check.rows,
                "unexpected_rows": check.unexpected_rows,
            }
            for check in finished_demo.result.table_checks
        ],
        "rows": [dict(zip(columns, row, strict=True)) for row in rows],
    }
