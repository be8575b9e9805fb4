"""The declared listeners as a table in Markdown, for the security page."""

from itertools import groupby

from penstock.platform.security.listeners import LISTENERS

_HEADER = "| started by | program | port | within reach of | serves | asks for |\n|---|---|---|---|---|---|\n"


def format_listener_table() -> str:
    """Return the table; a program that starts several listeners is named once."""
    lines = [_HEADER]
    for _, listeners in groupby(LISTENERS, key=lambda one: (one.profile, one.program)):
        for number, one in enumerate(listeners):
            names = (f"`{one.profile}`", one.program) if number == 0 else ("", "")
            cells = (*names, str(one.port), one.reach, one.serves, one.asks_for)
            lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)
