"""A view that refreshes itself until Ctrl-C, as `watch` does.

A terminal shows each snapshot in place of the last one. It is written in one piece over the former text, so
that nothing flickers. It uses the terminal's alternate screen, so that earlier output is there again at the
end. Any other output gets one snapshot after another.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from penstock.platform.cli.stop_signals import stop_on_signal
from penstock.platform.cli.terminal_keys import read_keys

REFRESH_INTERVAL_S = 2.0
ENTER_SCREEN, LEAVE_SCREEN = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""The alternate screen, without a cursor, and with long lines cut off instead of wrapped."""
CURSOR_HOME, CLEAR_LINE_END, CLEAR_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"

RenderLines = Callable[[int | None], Sequence[str]]
"""Returns the lines of a view that fit into a width."""
HandleKey = Callable[[str], bool]
"""Takes a key, and returns whether the view stays."""

watch_option = click.option(
    "--watch", is_flag=True, help=f"Refresh the view every {REFRESH_INTERVAL_S:.0f} s until Ctrl-C."
)


def terminal_width() -> int | None:
    """Return the width of the terminal; None if the output is none, and need not fit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_view(render_lines: RenderLines) -> None:
    """Print a view once."""
    for line in render_lines(terminal_width()):
        click.echo(line)


def watch_view(render_lines: RenderLines, interval_s: float = REFRESH_INTERVAL_S) -> None:
    """Show a view again and again until Ctrl-C or SIGTERM."""
    is_terminal = sys.stdout.isatty()
    lines: Sequence[str] = []
    with stop_on_signal() as stop, _own_screen(is_terminal):
        while not stop.is_set():
            lines = [_format_time(), *render_lines(terminal_width())]
            if is_terminal:
                _draw(lines, shutil.get_terminal_size().lines)
            else:
                click.echo("\n".join([*lines, ""]))
            stop.wait(interval_s)
    if is_terminal:
        click.echo("\n".join(lines))  # the last snapshot stays readable


def steer_view(
    render_lines: RenderLines, handle_key: HandleKey, interval_s: float = REFRESH_INTERVAL_S
) -> None:
    """Show a view in a terminal until a key, Ctrl-C or SIGTERM ends it; print it once to any other output."""
    if not sys.stdout.isatty():
        print_view(render_lines)
        return
    lines: Sequence[str] = []
    with stop_on_signal() as stop, _own_screen(is_terminal=True), read_keys() as wait_for_key:
        while not stop.is_set():
            lines = render_lines(terminal_width())
            _draw(lines, shutil.get_terminal_size().lines)
            key = wait_for_key(stop, interval_s)
            if key and not handle_key(key):
                break
    click.echo("\n".join(lines))  # the last snapshot stays readable


def watch_documents(print_document: Callable[[], None], interval_s: float = REFRESH_INTERVAL_S) -> None:
    """Print a document again and again until Ctrl-C or SIGTERM."""
    with stop_on_signal() as stop:
        while not stop.is_set():
            print_document()
            stop.wait(interval_s)


def _draw(lines: Sequence[str], height: int) -> None:
    """Write a whole screen at once; what does not fit is counted."""
    hidden = len(lines) - height + 1
    if hidden > 0:
        lines = [*lines[: height - 2], f"… {hidden + 1} more lines; enlarge the terminal to see them"]
    frame = "".join(f"{line}{CLEAR_LINE_END}\n" for line in lines)
    sys.stdout.write(f"{CURSOR_HOME}{frame}{CLEAR_SCREEN_END}")
    sys.stdout.flush()


@contextmanager
def _own_screen(is_terminal: bool) -> Iterator[None]:
    if not is_terminal:
        yield
        return
    sys.stdout.write(ENTER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(LEAVE_SCREEN)
        sys.stdout.flush()


def _format_time() -> str:
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, refreshed every {REFRESH_INTERVAL_S:.0f} s; Ctrl-C ends"
    )
