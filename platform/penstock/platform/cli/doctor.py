"""`penstock doctor`: what is installed, locked, writable, written right and reachable."""

from dataclasses import asdict

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json, print_table


@click.command(name="doctor", epilog=format_examples("penstock doctor", "penstock doctor --json"))
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(as_json: bool) -> int:
    """Look at everything the platform stands on, and say the way out of what is wrong.

    Ends with 1 when anything is not as it should be. Nothing is changed.
    """
    from penstock.platform.doctor import check_definitions, check_installation, check_services

    settings = current_settings()
    findings = [*check_installation(settings), *check_definitions(), *check_services(settings)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(finding.check, "ok" if finding.ok else "wrong", finding.detail) for finding in findings]
        print_table(("what", "state", "detail"), rows)
    return 0 if all(finding.ok for finding in findings) else 1
