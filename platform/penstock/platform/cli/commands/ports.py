"""`penstock ports`: what listens, and what each listener asks for."""

from dataclasses import asdict, dataclass

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.settings import Settings

SECTION: Section = "Local stack"


@dataclass(frozen=True)
class SocketRow:
    """A socket of the running stack, and what it is declared for."""

    program: str
    address: str
    serves: str
    asks_for: str
    is_declared: bool


@click.command(
    name="ports",
    short_help="Show what listens, and what it asks for",
    epilog=format_examples("penstock ports", "penstock ports --markdown"),
)
@json_option
@click.option("--markdown", is_flag=True, help="Print every declared listener, as in the security page.")
def command(as_json: bool, markdown: bool) -> int:
    """Show the sockets on which the running stack listens, who reaches them, and what they ask for.

    The exit code is 1 if a program listens on a socket that is not declared.
    """
    if markdown:
        from penstock.platform.security.listener_table import format_listener_table

        click.echo(format_listener_table(), nl=False)
        return 0
    rows = _read_lasting_sockets(current_settings())
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        shown = [(row.program, row.address, row.serves, row.asks_for) for row in rows]
        print_table(("program", "address", "serves", "asks for"), shown, empty="nothing of the stack listens")
    return 0 if all(row.is_declared for row in rows) else 1


def _read_lasting_sockets(settings: Settings) -> list[SocketRow]:
    """Return the sockets of the stack. An undeclared one counts if a second reading finds it as well.

    Processes are read one after the other, so a socket that a program opens meanwhile seems to have no program.
    """
    rows = _read_sockets(settings)
    if all(row.is_declared for row in rows):
        return rows
    undeclared = {row.address for row in _read_sockets(settings) if not row.is_declared}
    return [row for row in rows if row.is_declared or row.address in undeclared]


def _read_sockets(settings: Settings) -> list[SocketRow]:
    from penstock.infra.processes import MANAGER_NAME
    from penstock.platform.security.listeners import list_listeners
    from penstock.platform.security.open_sockets import find_listener, list_open_sockets
    from penstock.platform.stack.manager import stack_manager

    sockets_by_program = {
        program: list_open_sockets(pid) for program, pid in stack_manager(settings).list_pids().items()
    }
    # The manager is the parent of all; what no program has is of a process that nobody declared.
    programs = sockets_by_program.keys() - {MANAGER_NAME}
    sockets_by_program[MANAGER_NAME] = sockets_by_program.get(MANAGER_NAME, set()).difference(
        *(sockets_by_program[program] for program in programs)
    )
    rows = []
    for program, sockets in sockets_by_program.items():
        listeners = list_listeners("penstock up", program)
        for socket in sorted(sockets):
            listener = find_listener(socket, listeners, settings.ports)
            serves, asks_for = (
                (listener.serves, listener.asks_for) if listener else ("not declared", "unknown")
            )
            address = f"{socket.address}:{socket.port}"
            rows.append(SocketRow(program, address, serves, asks_for, listener is not None))
    return rows
