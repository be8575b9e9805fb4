"""`penstock doctor`: diagnose the installation, the definitions and the services."""

from dataclasses import asdict

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json, print_table

SECTION: Section = "Local stack"


@click.command(
    name="doctor",
    short_help="Diagnose dependencies and suggest fixes",
    epilog=format_examples("penstock doctor", "penstock doctor --json"),
)
@json_option
def command(as_json: bool) -> int:
    """Diagnose dependencies, definitions and services, and suggest a fix for each problem.

    Changes nothing. The exit code is 1 if a check fails.
    """
    from penstock.platform.doctor import check_definitions, check_installation, check_services

    settings = current_settings()
    findings = [*check_installation(settings), *check_definitions(), *check_services(settings)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(finding.check, "ok" if finding.ok else "failed", finding.detail) for finding in findings]
        print_table(("check", "state", "detail"), rows)
    return 0 if all(finding.ok for finding in findings) else 1
