"""`penstock doctor`: what is installed, locked, writable, written right and reachable."""

from dataclasses import asdict

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table


@click.command(name="doctor", epilog=example("penstock doctor", "penstock doctor --json"))
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(as_json: bool) -> int:
    """Look at everything the platform stands on, and say the way out of what is wrong.

    Ends with 1 when anything is not as it should be. Nothing is changed.
    """
    from penstock.platform.doctor import installed, reachable, usable

    settings = current_settings()
    findings = [*installed(settings), *usable(), *reachable(settings)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(found.what, "ok" if found.ok else "wrong", found.detail) for found in findings]
        print_table(("what", "state", "detail"), rows)
    return 0 if all(finding.ok for finding in findings) else 1
