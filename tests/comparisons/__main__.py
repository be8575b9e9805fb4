"""Compares Penstock with another system over the same input, and exits with 1 if their results differ.

`python -m tests.comparisons beam|dstreams [--out FOLDER]` prints a row per program or operation, and writes a page
with all results of both. Apache Beam is installed into an environment of its own, because its packages conflict
with ours.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.comparisons.beam.pane_comparison import compare_programs
from tests.comparisons.dstreams.batch_comparison import compare_verbs

from penstock.platform.cli.output import print_table
from penstock.platform.cli.steps import StepPrinter
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.settings import load_settings

COMPARISONS = {"beam": compare_programs, "dstreams": compare_verbs}


def main(name: str, out: Path) -> bool:
    """Run one comparison; tell whether the results of both systems are equal."""
    settings = load_settings().settings
    with (
        tempfile.TemporaryDirectory() as folder,
        StepPrinter().step(f"compare with {name}") as report_progress,
        open_command_spark(settings, name, report_progress) as session,
    ):
        report = COMPARISONS[name](session, settings.root, Path(folder), report_progress)
    page = out / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(report.page_lines) + "\n", "utf-8")
    print_table(report.columns, report.rows)
    print(f"page: {page}")
    return report.is_equal


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.comparisons", description=__doc__)
    parser.add_argument("name", choices=COMPARISONS)
    parser.add_argument("--out", type=Path, default=Path(".penstock/comparisons"), help="Folder of the page.")
    arguments = parser.parse_args()
    sys.exit(not main(arguments.name, arguments.out))
