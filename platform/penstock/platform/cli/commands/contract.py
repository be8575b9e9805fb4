"""`penstock contract`: exchange contracts with other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.removal_view import confirm_name

if TYPE_CHECKING:
    from penstock.ingestion.contracts.odcs import ImportNote, OdcsImport

SECTION: Section = "Topics"
_format = click.option(
    "--format",
    "_document_format",
    type=click.Choice(["odcs"]),
    default="odcs",
    show_default=True,
    help="odcs: the Open Data Contract Standard, version 3.",
)


@click.group(
    name="contract",
    short_help="Exchange contracts with other tools",
    epilog=format_examples(
        "penstock contract export sensors > sensors.odcs.yaml",
        "penstock contract import orders.odcs.yaml",
    ),
)
def command() -> None:
    """Export and import contracts as documents of the Open Data Contract Standard."""


@command.command(
    name="export",
    short_help="Print a contract in a standard format",
    epilog=format_examples("penstock contract export sensors > sensors.odcs.yaml"),
)
@click.argument("topic")
@_format
def export_contract(topic: str, _document_format: str) -> None:
    """Print the contract of TOPIC as a document of the Open Data Contract Standard, in YAML."""
    from penstock.ingestion.contracts import load_contract
    from penstock.ingestion.contracts.odcs import export_odcs
    from penstock.ingestion.contracts.yaml_files import format_yaml

    document = export_odcs(load_contract(topic), current_settings().kafka.bootstrap_servers)
    click.echo(format_yaml(document), nl=False)


@command.command(
    name="import",
    short_help="Make a contract from a document",
    epilog=format_examples(
        "penstock contract import orders.odcs.yaml --print",
        "penstock contract import shop.odcs.yaml --object orders",
        "penstock contract import orders.odcs.yaml --replace --yes orders",
    ),
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_format
@click.option("--object", "object_name", metavar="NAME", help="The object to import, if there are several.")
@click.option("--print", "only_print", is_flag=True, help="Print the contract; write nothing.")
@click.option("--replace", is_flag=True, help="Replace the contract of the topic, if there is one.")
@click.option("--yes", "confirmed", metavar="TOPIC", help="Do not ask; repeat the topic to confirm.")
def import_contract(
    file: Path,
    _document_format: str,
    object_name: str | None,
    only_print: bool,
    replace: bool,
    confirmed: str | None,
) -> None:
    """Make the contract of a topic from FILE, a document of the Open Data Contract Standard.

    What a contract cannot hold is listed on the error output: where it is, what it is, and what was done.
    """
    from penstock.ingestion.contracts import CATALOG_FOLDER
    from penstock.ingestion.contracts.yaml_files import format_yaml

    imported = _read_document(file, object_name)
    text = format_yaml(imported.contract_document, short_lines=True)
    if only_print:
        click.echo(text, nl=False)
    else:
        topic = imported.contract_document["topic"]
        _write_contract(CATALOG_FOLDER / f"{topic}.yaml", text, topic, replace=replace, confirmed=confirmed)
    _print_notes(imported.notes)


def _read_document(file: Path, object_name: str | None) -> "OdcsImport":
    from penstock.core.display_path import display_path
    from penstock.ingestion.contracts.odcs import import_odcs
    from penstock.ingestion.contracts.yaml_files import read_yaml
    from penstock.ingestion.errors import ContractError, DocumentError

    try:
        return import_odcs(read_yaml(file), object_name)
    except (ContractError, DocumentError) as error:
        raise ContractError(f"{display_path(file)}: {error}") from error


def _write_contract(path: Path, text: str, topic: str, *, replace: bool, confirmed: str | None) -> None:
    from penstock.core.display_path import display_path

    if path.exists():
        if not replace:
            raise click.UsageError(
                f"{display_path(path)} exists; nothing was written. "
                "Compare with --print, or replace it with --replace"
            )
        confirm_name(f"This replaces {display_path(path)}. Type {topic} to confirm", topic, confirmed)
    path.write_text(text, "utf-8")
    click.echo(f"Wrote {display_path(path)}. `penstock topics plan` shows what it changes.")


def _print_notes(notes: "Sequence[ImportNote]") -> None:
    if notes:
        click.echo("The contract differs from the document:", err=True)
    for note in notes:
        content = f" ({note.content})" if note.content else ""
        click.echo(f"  {note.path}{content}: {note.action}", err=True)
