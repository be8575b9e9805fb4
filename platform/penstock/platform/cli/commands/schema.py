"""`penstock schema`: print the JSON Schema of a kind of YAML file."""

from collections.abc import Callable
from typing import Any

import click

from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples, print_json

SECTION: Section = "Infrastructure and shell"


def _build_contract_schema() -> dict[str, Any]:
    from penstock.ingestion.contracts.document_schema import build_contract_schema

    return build_contract_schema()


def _build_pipeline_schema() -> dict[str, Any]:
    from penstock.stream.yaml_loader.document_schema import build_document_schema

    return build_document_schema()


def _build_suite_schema() -> dict[str, Any]:
    from penstock.quality.expectations.suite_schema import build_suite_schema

    return build_suite_schema()


BUILDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "contract": _build_contract_schema,
    "pipeline": _build_pipeline_schema,
    "suite": _build_suite_schema,
}


@click.command(
    name="schema",
    short_help="Print the JSON Schema of a kind of YAML",
    epilog=format_examples("penstock schema pipeline > pipeline.schema.json"),
)
@click.argument("kind", type=click.Choice(list(BUILDERS)))
def command(kind: str) -> None:
    """Print the JSON Schema of contracts, pipelines or suites, from which editors complete and check.

    The checkout has these files, and `.vscode/settings.json` names them. Print them again after you install kinds
    of your own, such as windows or expectations.
    """
    print_json(BUILDERS[kind]())
