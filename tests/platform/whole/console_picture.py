"""Takes the picture of the console: `python -m tests.platform.whole.console_picture platform/docs/console.png`.

A stack in a scratch folder runs until a stream has written panes for a few minutes of event time.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tests.browser import CHROMIUM_ARGUMENTS
from tests.platform.whole.readme_picture import JARS
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

SIZE = {"width": 1440, "height": 1180}
MIN_BATCHES = 200


def take_picture(url: str, target: Path) -> None:
    """Save a picture of the page of a stream, once it shows panes and is live."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(CHROMIUM_ARGUMENTS)
        )
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{url}/streams/sensor_minute")
        expect(page.locator(".connection")).to_have_text("live", timeout=60_000)
        expect(page.locator(".diagram rect.on_time").first).to_be_visible(timeout=60_000)
        page.screenshot(path=target)
        browser.close()


def main(target: Path) -> None:
    """Start a stack, take the picture, and stop the stack."""
    with tempfile.TemporaryDirectory() as scratch:
        stack = ScratchStack(Path(scratch), JARS)
        try:
            stack.up()
            poll_until(lambda: stack.batch() > MIN_BATCHES, 600, f"{MIN_BATCHES} batches")
            take_picture(stack.console, target)
        finally:
            stack.down()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
