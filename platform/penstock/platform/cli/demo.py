"""`penstock demo`: a pipeline from nothing to a picture, or what others have taught beside ours."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, called, example, print_json, print_table

if TYPE_CHECKING:
    from penstock.platform.demo.beside import Compared
    from penstock.platform.demo.gallery import Shown

EXAMPLE = example(
    "penstock demo --list",
    "penstock demo word_count",
    "penstock demo record_at_a_time",
    "penstock demo --all --out pipelines/docs/gallery",
)


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.pipelines import catalog
    from penstock.platform.demo.beside import BESIDE

    return [name for name in (*catalog.names(), *BESIDE) if name.startswith(typed)]


@click.command(name="demo", epilog=EXAMPLE)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
@click.option("--list", "listing", is_flag=True, help="List what can be shown, and run nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Show every pipeline, and write a page with all pictures."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for pages and pictures; .penstock/demo/NAME without it.",
)
@click.option("--yes", is_flag=True, help="Install what a demonstration lacks (Apache Beam), and do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(
    names: tuple[str, ...], listing: bool, everything: bool, out: Path | None, yes: bool, as_json: bool
) -> None:
    """Run a shipped pipeline from nothing to a picture of its panes, and end with its result.

    A broker of its own is started, fed by the topic's generator, and gone when the command ends; nothing of a
    running stack is touched. The clock is the input's: minutes take seconds, and a seed gives the same picture.
    `beam`, `dstreams` and `record_at_a_time` run what others have taught beside ours; 1 where the two differ.
    """
    if listing:
        _list(as_json)
        return
    from penstock.pipelines import catalog
    from penstock.platform.demo.beside import BESIDE

    if bool(names) == everything:
        raise click.UsageError("Name a pipeline, or say --all; `penstock demo --list` shows which there are.")
    beside = [name for name in names if name in BESIDE]
    pipelines = catalog.names() if everything else tuple(name for name in names if name not in BESIDE)
    told = _pipelines(pipelines, out, as_json, everything) if pipelines else []
    compared = [_beside(name, out, yes, as_json) for name in beside]
    if as_json:
        print_json([*told, *map(_compared_as_json, beside, compared)])
    if not all(one.equal for one in compared):
        raise SystemExit(1)


def _pipelines(
    names: tuple[str, ...], out: Path | None, as_json: bool, everything: bool
) -> list[dict[str, object]]:
    from penstock.platform.demo.gallery import demonstrate, index

    told = []
    for shown in demonstrate(current_settings(), names, out, Steps().step):
        if as_json:
            told.append(_as_json(shown))
        elif not everything:
            _show(shown)
    if everything and out is not None:
        (out / "README.md").write_text(index(names), "utf-8")
        click.echo(f"all pictures: {out / 'README.md'}", err=as_json)
    return told


def _beside(name: str, out: Path | None, yes: bool, as_json: bool) -> "Compared":
    from penstock.platform.demo.beside import Setting, compare

    settings = current_settings()
    folder = settings.home / "demo" / name
    shown = compare(
        name, Setting(settings, folder, Steps().step, lambda asked: yes or click.confirm(asked, err=True))
    )
    if out is not None:
        shown = shown.moved(out)
    if not as_json:
        print_table(shown.columns, shown.rows)
        click.echo(shown.said)
        click.echo(f"the result: {shown.result}")
        click.echo(f"the page:   {settings.root / shown.page}")
    return shown


def _list(as_json: bool) -> None:
    from penstock.pipelines import catalog
    from penstock.platform.demo.beside import BESIDE

    found = [
        (
            name,
            ", ".join(source.name for source in catalog.load(name).sources),
            catalog.about(name).partition("\n\n")[0],
        )
        for name in catalog.names()
    ]
    found += [(name, each.reads, each.about) for name, each in BESIDE.items()]
    if as_json:
        print_json([dict(zip(("pipeline", "reads", "about"), row, strict=True)) for row in found])
    else:
        print_table(("name", "reads", "about"), found)


def _show(shown: "Shown") -> None:
    from penstock.platform.demo.page import accounted, cell, newest

    columns, rows = newest(shown.ran)
    print_table(columns, [[cell(value) for value in row] for row in rows], empty="no rows")
    click.echo(accounted(shown.ran))
    unmet = [one for one in shown.ran.checked if one.broken]
    click.echo(
        f"Expectations of its tables: {len(shown.ran.checked)}, {len(unmet) or 'none'} of them not met."
    )
    click.echo(f"the picture: {shown.picture}")
    click.echo(f"the page:    {shown.page}")
    click.echo(f"the tables:  PENSTOCK_WAREHOUSE={shown.ran.warehouse} {called()} table list")


def _as_json(shown: "Shown") -> dict[str, object]:
    from penstock.platform.demo.page import newest

    columns, rows = newest(shown.ran)
    return {
        "pipeline": shown.ran.plan.name,
        "picture": str(shown.picture),
        "page": str(shown.page),
        "warehouse": str(shown.ran.warehouse),
        "expectations": [
            {
                "table": one.table,
                "expectation": one.expectation.name,
                "rows": one.rows,
                "broken": one.broken,
            }
            for one in shown.ran.checked
        ],
        "rows": [dict(zip(columns, row, strict=True)) for row in rows],
    }


def _compared_as_json(name: str, shown: "Compared") -> dict[str, object]:
    return {
        "name": name,
        "equal": shown.equal,
        "result": str(shown.result),
        "page": str(shown.page),
        "rows": [dict(zip(shown.columns, row, strict=True)) for row in shown.rows],
    }
