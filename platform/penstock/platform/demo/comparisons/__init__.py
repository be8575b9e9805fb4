"""Demonstrations of what others have taught, each run beside ours over the same input, and compared.

A demonstration is a module with a function `run`. Naming them imports none: one is loaded when it is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from penstock.platform.demo.comparisons.comparison import ComparisonResult, ComparisonSetup


@dataclass(frozen=True)
class ComparisonInfo:
    """What is shown, of which input."""

    input_label: str
    description: str


class _ComparisonModule(Protocol):
    def run(self, setting: ComparisonSetup) -> ComparisonResult: ...


COMPARISONS: Mapping[str, ComparisonInfo] = {
    "beam": ComparisonInfo(
        "its scripts", "Three programs by Apache Beam's own runner and by this platform: every pane."
    ),
    "dstreams": ComparisonInfo(
        "its batches", "Each verb of Spark's DStreams and its line here: every batch."
    ),
    "record_at_a_time": ComparisonInfo(
        "payments",
        "Alerts in Spark's real-time mode and in micro-batches: both latency curves in one picture.",
    ),
}


def run_comparison(name: str, setup: ComparisonSetup) -> ComparisonResult:
    """Run a demonstration, in a folder whose former content goes."""
    return cast("_ComparisonModule", import_module(f"{__name__}.{name}")).run(setup)


__all__ = ["COMPARISONS", "ComparisonInfo", "ComparisonResult", "ComparisonSetup", "run_comparison"]
