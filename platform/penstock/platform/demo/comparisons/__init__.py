"""Comparisons with other systems over the same input.

A comparison is a module with a function `run`. It is imported when it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from penstock.platform.demo.comparisons.comparison import ComparisonResult, ComparisonSetup


@dataclass(frozen=True)
class ComparisonInfo:
    """The description of a comparison and of its input."""

    input_label: str
    description: str


class _ComparisonModule(Protocol):
    def run(self, setting: ComparisonSetup) -> ComparisonResult: ...


COMPARISONS: Mapping[str, ComparisonInfo] = {
    "beam": ComparisonInfo(
        "its scripts", "Compares every pane of three programs in Apache Beam and in Penstock."
    ),
    "dstreams": ComparisonInfo(
        "its batches",
        "Compares every batch of Spark's DStream operations with their equivalents in Penstock.",
    ),
    "record_at_a_time": ComparisonInfo(
        "payments",
        "Compares the latency of alerts in Spark's real-time mode and in micro-batches.",
    ),
}


def run_comparison(name: str, setup: ComparisonSetup) -> ComparisonResult:
    """Run a comparison. Deletes the former content of its folder."""
    return cast("_ComparisonModule", import_module(f"{__name__}.{name}")).run(setup)


__all__ = ["COMPARISONS", "ComparisonInfo", "ComparisonResult", "ComparisonSetup", "run_comparison"]
