"""The distribution of tests to workers, and their order.

The tests of a file run in one worker, because they may share module fixtures. Files that share something expensive
are one group; the tests of files that share nothing and mostly wait are distributed one by one. The longest groups
start first, so that none of them runs alone at the end.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TEST_GROUPS = (
    # There is one Spark session per process, and it takes seconds to start. A group of all Spark tests would be by
    # far the longest, so there are two.
    ("spark", "tests/pipelines/engine/spark/"),
    ("spark and others", "tests/pipelines/"),
    ("spark and others", "tests/quality/"),
    ("spark and others", "tests/platform/whole/test_spark_master.py"),
    # Two cores are too few for two whole platforms.
    ("platform", "tests/platform/whole/"),
    # Mostly waits for the polling delays of the provider.
    ("aws", "tests/infra/environments/aws/"),
    ("local", "tests/infra/environments/local/"),
    ("compose", "tests/docker/"),
    # CI runs fifty rounds.
    ("kills", "tests/ingestion/test_killed_producers.py"),
)
"""Groups by the prefix of a test's path; the first match counts."""

GROUPS_LONGEST_FIRST = ("platform", "spark", "spark and others", "aws", "compose", "kills", "local")

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


def scheduling_key(item: pytest.Item) -> tuple[int, bool]:
    """Sort the longest groups first, and in each the tests that share a running stack last."""
    group = find_group(item.nodeid)
    position = (
        GROUPS_LONGEST_FIRST.index(group) if group in GROUPS_LONGEST_FIRST else len(GROUPS_LONGEST_FIRST)
    )
    return position, "running" in getattr(item, "fixturenames", ())


class GroupScheduling(LoadScopeScheduling):
    """Hands out groups as they come; `--no-loadscope-reorder` keeps their order."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)
