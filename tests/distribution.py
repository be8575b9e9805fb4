"""The distribution of tests to workers, and their order.

The tests of a file run in one worker, because they may share module fixtures. Files that share something expensive
are one group; the tests of files that share nothing and mostly wait are distributed one by one. The longest groups
start first, then the other files by their number of tests, so that little is left to run alone at the end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TEST_GROUPS = (
    # Two cores are too few for three whole platforms. So all that start one are in two groups: those with a stack,
    # a cluster or an environment of their own, and those that share a running stack.
    ("stacks", "tests/platform/whole/test_applied_environment.py"),
    ("stacks", "tests/platform/whole/test_kills.py"),
    ("stacks", "tests/platform/whole/test_outside_kinds.py"),
    ("stacks", "tests/platform/whole/test_readme.py"),
    ("stacks", "tests/platform/whole/test_soak.py"),
    ("stacks", "tests/platform/whole/test_spark_master.py"),
    ("stacks", "tests/platform/whole/test_submitted_host.py"),
    ("stacks", "tests/docker/"),
    ("stacks", "tests/infra/environments/local/"),
    ("platform", "tests/platform/whole/"),
    # Waits for the fixed polling delays of the provider, about eight minutes in all.
    ("aws", "tests/infra/environments/aws/"),
    ("golden", "tests/golden/"),
    # CI runs fifty rounds.
    ("kills", "tests/ingestion/test_killed_producers.py"),
)
"""Groups by the prefix of a test's path; the first match counts."""

GROUPS_LONGEST_FIRST = ("platform", "stacks", "aws", "golden", "kills")

UNGROUPED_FILES = (
    "tests/infra/processes/test_manager.py",
    "tests/infra/processes/test_killed_processes.py",
    "tests/infra/processes/test_readiness.py",
    "tests/infra/terraform/test_hcl.py",
)
"""Files whose tests share nothing."""


def find_group(nodeid: str) -> str:
    """Return the unit of distribution of a test: its group, its file, or itself."""
    path = nodeid.partition("::")[0]
    unit = next((group for group, prefix in TEST_GROUPS if path.startswith(prefix)), path)
    return nodeid if path in UNGROUPED_FILES else unit


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Sort the groups first, then the files with the most marked tests; the order of plain files stays.

    In its group, a test that needs the running stack comes after those that do not.
    """
    units = [find_group(item.nodeid) for item in items]
    marked_units = [unit for item, unit in zip(items, units, strict=True) if is_marked(item)]
    ranks = rank_units(units, Counter(marked_units))
    items.sort(
        key=lambda item: (ranks[find_group(item.nodeid)], "running" in getattr(item, "fixturenames", ()))
    )


def is_marked(item: pytest.Item) -> bool:
    """Return whether a test starts real parts, so that `make test-plain` leaves it out."""
    return any(item.get_closest_marker(marker) for marker in ("spark", "kafka", "whole"))


def rank_units(units: Iterable[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the position of each unit: groups in their order, then the others by size."""
    in_order = list(dict.fromkeys(units))
    groups = [group for group in GROUPS_LONGEST_FIRST if group in in_order]
    others = [unit for unit in in_order if unit not in GROUPS_LONGEST_FIRST]
    others.sort(key=lambda unit: -sizes.get(unit, 0))
    return {unit: rank for rank, unit in enumerate([*groups, *others])}


class GroupScheduling(LoadScopeScheduling):
    """Hands out groups as they come; `--no-loadscope-reorder` keeps their order."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)
