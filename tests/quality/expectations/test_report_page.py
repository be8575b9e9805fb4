"""The page of expectations, written by several processes at the same time."""

import subprocess
import sys
from pathlib import Path

from penstock.quality.expectations.report_page import write_report_page

PUBLISH_COUNT = 200
PUBLISH_PAGES = f"""
import sys
from pathlib import Path
from penstock.quality.expectations.report_page import write_report_page

sys.stdin.read(1)
for _ in range({PUBLISH_COUNT}):
    write_report_page(Path(sys.argv[1]), [])
"""


def test_two_processes_can_publish_the_page_concurrently(tmp_path: Path) -> None:
    publishers = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISH_PAGES, str(tmp_path)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for publisher in publishers:
        assert publisher.stdin is not None
        publisher.stdin.write("x")
        publisher.stdin.flush()
    errors = [publisher.communicate(timeout=60)[1] for publisher in publishers]
    assert [(publisher.returncode, error) for publisher, error in zip(publishers, errors, strict=True)] == [
        (0, ""),
        (0, ""),
    ]
    page = write_report_page(tmp_path / "alone", [])
    assert (tmp_path / "index.html").read_text("utf-8") == page.read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "index.html"]
