"""A new demo run writes the committed picture and page, byte for byte."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.infra.local_broker import LocalBroker
from penstock.platform.demo.demo_run import run_demo
from penstock.platform.demo.gallery import write_demo_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GALLERY = Path("pipelines/docs/gallery")
NAME = "running_avg"
"""A demo with few batches; all are made in the same way."""


@pytest.mark.spark
@pytest.mark.kafka
def test_a_new_demo_run_writes_the_committed_files(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    demo = run_demo(NAME, spark, broker.bootstrap, tmp_path / "run", lambda _: None)
    files = write_demo_files(demo, tmp_path / "made")
    assert files.picture.read_text("utf-8") == (GALLERY / f"{NAME}.svg").read_text("utf-8")
    assert files.page.read_text("utf-8") == (GALLERY / f"{NAME}.md").read_text("utf-8")
    classes = set(re.findall(r'class="(\w+)"', files.picture.read_text("utf-8")))
    assert classes >= {"early", "watermark", "record", "ideal"}
