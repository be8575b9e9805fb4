"""Three programs for Apache Beam's own runner. Runs in the environment with Beam only.

`python programs_in_beam.py PROGRAM SCRIPT PANES` runs a script of elements, watermarks and processing times through
a program, and writes each pane as a line of JSON.
"""

# mypy: ignore-errors
# Beam is not installed where types are checked.

import json
import logging
import sys
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.combiners import MeanCombineFn
from apache_beam.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from apache_beam.transforms.window import FixedWindows, Sessions, SlidingWindows, TimestampedValue


def word_count(lines):
    """Count words in ten-second windows, with an early pane for every second occurrence and late corrections."""
    return (
        lines
        | beam.FlatMap(lambda line: line["text"].split())
        | beam.WindowInto(
            FixedWindows(10),
            trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
            accumulation_mode=AccumulationMode.ACCUMULATING,
            allowed_lateness=60,
        )
        | beam.Map(lambda word: (word, 1))
        | beam.CombinePerKey(sum)
    )


def visits(clicks):
    """Count the clicks of each visit (session gap: ten seconds); each pane has the new clicks only."""
    return (
        clicks
        | beam.WindowInto(
            Sessions(10),
            trigger=AfterWatermark(late=AfterCount(1)),
            accumulation_mode=AccumulationMode.DISCARDING,
            allowed_lateness=60,
        )
        | beam.Map(lambda click: (click["user"], 1))
        | beam.CombinePerKey(sum)
    )


def moving_mean(readings):
    """Mean of twenty-second windows that slide by ten seconds, updated five seconds after a first new reading."""
    return (
        readings
        | beam.WindowInto(
            SlidingWindows(20, 10),
            trigger=Repeatedly(AfterProcessingTime(5)),
            accumulation_mode=AccumulationMode.ACCUMULATING,
            allowed_lateness=60,
        )
        | beam.Map(lambda reading: (reading["device"], reading["temperature"]))
        | beam.CombinePerKey(MeanCombineFn())
    )


PROGRAMS = {"word_count": word_count, "visits": visits, "moving_mean": moving_mean}
TIMINGS = {0: "early", 1: "on_time", 2: "late", 3: "unknown"}


class PaneFileWriter(beam.DoFn):
    """Writes panes to a file."""

    def __init__(self, path):
        self._path = path

    def process(self, element, window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam):
        """Write one pane."""
        key, value = element
        row = {
            "key": key,
            "value": value,
            "window": [int(window.start), int(window.end)],
            "pane": pane.index,
            "timing": TIMINGS[pane.timing],
        }
        with Path(self._path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def build_test_stream(script):
    """Return the Beam test stream for a script."""
    stream = TestStream()
    for step in script:
        match step:
            case {"elements": elements}:
                stream.add_elements([TimestampedValue(element, element["at"]) for element in elements])
            case {"watermark": "inf"}:
                stream.advance_watermark_to_infinity()
            case {"watermark": watermark_seconds}:
                stream.advance_watermark_to(watermark_seconds)
            case {"clock": seconds}:
                stream.advance_processing_time(seconds)
    return stream


def main(program, script, panes):
    """Run one program to its end."""
    Path(panes).touch()
    options = PipelineOptions(["--streaming", "--runner=BundleBasedDirectRunner"])
    with beam.Pipeline(options=options) as pipeline:
        read = pipeline | build_test_stream(json.loads(Path(script).read_text("utf-8")))
        PROGRAMS[program](read) | beam.ParDo(PaneFileWriter(panes))


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    main(*sys.argv[1:])
