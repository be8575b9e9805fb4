"""Runs a replay or an upgrade that the console started, in a process of its own: Spark needs one.

`python -m penstock.platform.console.history_worker < REQUEST`. It prints one line for each step, and the result.
"""

import signal
import sys
import traceback
from contextlib import closing
from typing import ClassVar

import click
import msgspec

from penstock.core.errors import PenstockError
from penstock.core.file_access import set_file_access
from penstock.core.progress import ProgressReporter
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.services.replay import ReplayRequest, replay_stream
from penstock.platform.services.upgrades import UpgradeRequest, upgrade_stream
from penstock.platform.settings import Settings, load_settings


class ReplayOrder(msgspec.Struct, frozen=True, tag="replay"):
    """A replay to run."""

    kind: ClassVar[str] = "replay"
    request: ReplayRequest

    @property
    def stream(self) -> str:
        """The stream to replay."""
        return self.request.stream


class UpgradeOrder(msgspec.Struct, frozen=True, tag="upgrade"):
    """An upgrade to run. `accepted` is what was shown: an upgrade that requires more is refused."""

    kind: ClassVar[str] = "upgrade"
    stream: str
    from_now: tuple[str, ...]
    start: str
    accepted: str

    @property
    def request(self) -> UpgradeRequest:
        """The request for the upgrade."""
        accepted = UpgradeClass[self.accepted.upper()]
        return UpgradeRequest(
            self.stream, self.from_now, self.start, accept=max(accepted, UpgradeClass.COMPATIBLE)
        )


HistoryOrder = ReplayOrder | UpgradeOrder


def main() -> int:
    """Run the order that standard input holds; return the exit code. SIGTERM ends it as Ctrl-C ends a command."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order: HistoryOrder = msgspec.json.decode(sys.stdin.buffer.read(), type=HistoryOrder)
    settings = load_settings().settings
    set_file_access(settings.file_access)
    with closing(open_control_store(settings.control_url, settings.control_secret)) as store:
        try:
            click.echo(run_order(settings, store, order, click.echo))
        except PenstockError as error:
            click.echo(error)
            return error.exit_code
        except Exception:
            click.echo(traceback.format_exc())
            raise
    return 0


def run_order(
    settings: Settings, store: ControlStore, order: HistoryOrder, report_progress: ProgressReporter
) -> str:
    """Run an order by the same code as the commands, and return its result in words."""
    if isinstance(order, UpgradeOrder):
        upgraded = upgrade_stream(settings, store, order.request, report_progress)
        return f"{upgraded.upgrade_class.label}: {upgraded.upgrade_class.description}"
    result = replay_stream(settings, store, order.request, report_progress)
    accounts = ", ".join(f"{count:,} {name}" for name, count in result.accounts.items())
    resumed = "" if result.batch is None else f"; the stream resumes after batch {result.batch}"
    return f"{accounts} in {result.seconds:.1f} s; results: {result.tables}{resumed}"


if __name__ == "__main__":
    sys.exit(main())
