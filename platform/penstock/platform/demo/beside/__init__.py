"""Demonstrations of what others have taught, each run beside ours over the same input, and compared.

A demonstration is a module with a function `run`. Naming them imports none: one is loaded when it is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from penstock.platform.demo.beside.compared import Compared, Setting


@dataclass(frozen=True)
class Beside:
    """What is shown, of which input."""

    reads: str
    about: str


class _Module(Protocol):
    def run(self, setting: Setting) -> Compared: ...


BESIDE: Mapping[str, Beside] = {
    "beam": Beside(
        "its scripts", "Three programs by Apache Beam's own runner and by this platform: every pane."
    ),
    "dstreams": Beside("its batches", "Each verb of Spark's DStreams and its line here: every batch."),
    "record_at_a_time": Beside(
        "payments",
        "Alerts in Spark's real-time mode and in micro-batches: both latency curves in one picture.",
    ),
}


def compare(name: str, setting: Setting) -> Compared:
    """Run a demonstration, in a folder whose former content goes."""
    return cast("_Module", import_module(f"{__name__}.{name}")).run(setting)


__all__ = ["BESIDE", "Beside", "Compared", "Setting", "compare"]
