"""Takes the picture of the README: `python -m tests.platform.whole.readme_picture platform/ui.png`.

A stack in a scratch folder runs until Dagster shows a materialization of the stream.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tests.browser import CHROMIUM_ARGUMENTS
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

JARS = Path(__file__).resolve().parents[3] / ".penstock" / "jars"
SIZE = {"width": 1500, "height": 860}


def take_picture(stack: ScratchStack, target: Path) -> None:
    """Wait until the graph shows materializations, and save a picture of it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(CHROMIUM_ARGUMENTS)
        )
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{stack.ui}/assets/streams/sensor_minute?view=lineage&lineageScope=neighbors")
        expect(page.get_by_text("latest").first).to_be_visible(timeout=60_000)
        expect(page.get_by_text("Materialized").first).to_be_visible(timeout=60_000)
        expect(page.get_by_text("Loading", exact=False)).to_have_count(0, timeout=60_000)
        page.screenshot(path=target)
        browser.close()


def main(target: Path) -> None:
    """Start a stack, take the picture, and stop the stack."""
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch), JARS)
        try:
            stack.up()
            poll_until(lambda: stack.batch() > 20, PATIENCE_S, "twenty batches")
            take_picture(stack, target)
        finally:
            stack.down()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
