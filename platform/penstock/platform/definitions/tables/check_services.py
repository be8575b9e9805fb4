"""The services that checks of tables and topics use, and links to the data quality page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import AssetCheckKey, MetadataValue

from penstock.core.clock import now_ms
from penstock.platform.host.quality_pages import file_url, quality_url
from penstock.platform.services.expectations import (
    DAY_MS,
    TableCheckOutcome,
    check_tables,
    count_broken_checks,
    find_broken_examples,
    list_due_tables,
    list_results_since,
    page_path,
)
from penstock.platform.settings import Settings
from penstock.quality.expectations.check_results import BatchCheckResult
from penstock.quality.expectations.suite import Expectation


@dataclass(frozen=True)
class CheckServices:
    """What the checks and the sensor need from the platform; called by runs and ticks, never at load."""

    check_tables: Callable[[Sequence[str]], Mapping[str, TableCheckOutcome]]
    """Checks the batches of some tables that are due."""
    results_since: Callable[[str, int], Sequence[BatchCheckResult]]
    """Returns the results of a table's batches checked after a time, or else the last result."""
    list_due: Callable[[], Iterator[tuple[str, int]]]
    """Yields each table with final windows that are not checked yet, and the end of these windows."""
    count_broken: Callable[[str], Mapping[str, int]]
    """Returns how many records of a topic failed each of its checks within a day."""
    now_ms: Callable[[], int]
    page_file: Path = Path()
    """The file of the data quality page."""
    base_url: str = ""
    """The URL of the folder above the page's folder; empty if a browser cannot reach it."""
    find_examples: Callable[[str, Expectation], Sequence[str]] = lambda _topic, _one: ()
    """Returns positions of some records of a topic that failed one of its checks."""


def create_check_services(settings: Settings) -> CheckServices:
    """Create the services of these settings."""
    return CheckServices(
        lambda subjects: check_tables(settings, subjects, lambda _: None),
        lambda subject, since_ms: list_results_since(settings, subject, since_ms),
        lambda: list_due_tables(settings),
        lambda topic: count_broken_checks(settings, topic, DAY_MS),
        now_ms,
        page_path(settings),
        quality_url(settings),
        lambda topic, expectation: find_broken_examples(settings, topic, expectation),
    )


def page_link(services: CheckServices, key: AssetCheckKey) -> dict[str, MetadataValue]:
    """Return a link to the results of a check on the data quality page."""
    return file_link(services, "page", services.page_file, f"#{'/'.join(key.asset_key.path)}-{key.name}")


def file_link(services: CheckServices, name: str, file: Path, anchor: str = "") -> dict[str, MetadataValue]:
    """Return a link to a file and its path; only the path if a browser cannot reach it."""
    path: MetadataValue = MetadataValue.path(f"{file}{anchor}")
    folder = services.page_file.parent.parent
    if not services.base_url or not file.is_relative_to(folder):
        return {name: path}
    return {name: MetadataValue.url(file_url(services.base_url, folder, file) + anchor), f"{name}_file": path}
