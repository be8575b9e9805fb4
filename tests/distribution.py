"""Which tests run in one worker, one after the other, and which of them begin first.

A file is the unit, as its tests may share what a module starts. Files that share something dearer are one group;
files whose tests share nothing and mostly wait are taken apart. Begun last, a group of minutes would be waited for
alone, so the longest begin first.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TEST_GROUPS = (
    # A Spark session is one a process, and takes seconds to start. All tests of Spark together would be the longest
    # group by far, so there are two.
    ("spark", "tests/pipelines/engine/spark/"),
    ("spark and others", "tests/pipelines/"),
    ("spark and others", "tests/quality/"),
    ("spark and others", "tests/platform/whole/test_spark_master.py"),
    # Two whole platforms at once are more than two cores.
    ("platform", "tests/platform/whole/"),
    # Mostly waits for the delays that the provider has between its questions.
    ("aws", "tests/infra/environments/aws/"),
    ("local", "tests/infra/environments/local/"),
    ("compose", "tests/docker/"),
    # Fifty rounds of it where CI asks for them.
    ("kills", "tests/ingestion/test_killed_producers.py"),
)
"""Groups by the beginning of a test's path; the first that fits counts."""

GROUPS_LONGEST_FIRST = ("platform", "spark", "spark and others", "aws", "compose", "kills", "local")

UNGROUPED_FILES = (
    "tests/infra/processes/test_manager.py",
    "tests/infra/processes/test_killed_processes.py",
    "tests/infra/processes/test_readiness.py",
    "tests/infra/terraform/test_hcl.py",
)
"""Files whose tests share nothing."""


def find_group(nodeid: str) -> str:
    """What is to stay together with this test: a group, its file, or nothing but itself."""
    path = nodeid.partition("::")[0]
    named = next((group for group, beginning in TEST_GROUPS if path.startswith(beginning)), path)
    return nodeid if path in UNGROUPED_FILES else named


def scheduling_key(item: pytest.Item) -> tuple[int, bool]:
    """Where a test stands: the longest groups first, and in them last what goes on running while others look."""
    group = find_group(item.nodeid)
    place = GROUPS_LONGEST_FIRST.index(group) if group in GROUPS_LONGEST_FIRST else len(GROUPS_LONGEST_FIRST)
    return place, "running" in getattr(item, "fixturenames", ())


class GroupScheduling(LoadScopeScheduling):
    """Hands out groups as they come; `--no-loadscope-reorder` keeps their order."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)
