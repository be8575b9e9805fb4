"""Checks a page against WCAG 2.2, levels A and AA, with axe, in the light and in the dark theme.

axe is a package of npm, and not part of this repository: `npm install --prefix .cache/axe axe-core@4.10.3`.
"""

from hashlib import sha256
from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE_FILE = Path(__file__).parents[3] / ".cache/axe/node_modules/axe-core/axe.min.js"
AXE_SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
INSTALL = "npm install --no-save --prefix .cache/axe axe-core@4.10.3"
WCAG_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOR_RULES = ["color-contrast", "link-in-text-block"]
RUN_AXE = """async ([theme, type, values]) => {
  document.documentElement.dataset.theme = theme;
  const found = await axe.run(document, {runOnly: {type, values}});
  return found.violations.flatMap((rule) => rule.nodes.map((node) => `${theme} ${rule.id}: ${node.html}`));
}"""


def load_axe() -> str:
    """Return the script of axe; skip the test by name where it is not installed."""
    if not AXE_FILE.exists():
        pytest.skip(f"axe-core is not installed: {INSTALL}")
    script = AXE_FILE.read_bytes()
    assert sha256(script).hexdigest() == AXE_SHA256, f"this is another axe-core; install it by: {INSTALL}"
    return script.decode()


def find_violations(page: Page, axe: str) -> list[str]:
    """Return each element of the shown page that violates a rule, by theme. Leaves the page as it was, in dark."""
    page.evaluate(axe)  # by the debugging protocol, which the content policy of the page does not concern
    runs = (["light", "tag", WCAG_TAGS], ["dark", "rule", COLOR_RULES])
    return [text for run in runs for text in page.evaluate(RUN_AXE, run)]
