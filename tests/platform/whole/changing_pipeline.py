"""A pipeline whose file tests change, and a module that it shares with others."""

from pathlib import Path

NAME = "changing"
SHARED_MODULE = '''
from pyspark.sql import DataFrame


def measured(frame: DataFrame) -> DataFrame:
    """Only readings where {condition}."""
    return frame.where("{condition}")
'''
PIPELINE = """
from penstock.pipelines.catalog._measured import measured
from penstock.stream import after_watermark, count, every, fixed, max_, mean, read

changing = (
    read("sensors", idle_after="10 seconds")
    .apply(measured)
    .key("{key}")
    .aggregate({outputs})
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=every("1 second")), lateness="{lateness}")
    .accumulation("retracting")
    .write("changing", mode="latest")
)
"""
HAS_TEMPERATURE = "temperature is not null"
FIRST_DEVICES = "device < 'device-0010'"


def write_pipeline(
    catalog: Path,
    condition: str = HAS_TEMPERATURE,
    key: str = "device",
    outputs: str = "n=count()",
    lateness: str = "1 hour",
) -> None:
    """Write the file of the pipeline and its shared module; unchanged files are not written."""
    texts = {
        "_measured.py": SHARED_MODULE.format(condition=condition),
        f"{NAME}.py": PIPELINE.format(key=key, outputs=outputs, lateness=lateness),
    }
    for name, text in texts.items():
        path = catalog / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
