"""A demonstration made anew gives the picture and the page that are committed, byte for byte."""

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
"""One of few batches: all are made in the same way."""


@pytest.mark.spark
@pytest.mark.kafka
def test_a_picture_made_anew_is_the_one_in_the_gallery(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    ran = run_demo(NAME, spark, broker.bootstrap, tmp_path / "run", lambda _: None)
    shown = write_demo_files(ran, tmp_path / "made")
    assert shown.picture.read_text("utf-8") == (GALLERY / f"{NAME}.svg").read_text("utf-8")
    assert shown.page.read_text("utf-8") == (GALLERY / f"{NAME}.md").read_text("utf-8")
    classes = set(re.findall(r'class="(\w+)"', shown.picture.read_text("utf-8")))
    assert classes >= {"early", "watermark", "record", "ideal"}
