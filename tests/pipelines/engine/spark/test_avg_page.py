"""The topic `avg` of every course, by the lines of its page: fed by Kafka's console, read from the beginning."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.platform.cli.main import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path("pipelines/docs/avg.md").read_text("utf-8")
TOOLS, PENSTOCK = ".venv/bin/python -m penstock.infra.kafka_tools ", ".venv/bin/penstock "
Means = dict[str, tuple[float, int]]


def lines() -> list[str]:
    """Every line of the page that is to be run, each with what it is given."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    return re.findall(r"^\.venv/bin/.*?(?:<<END\n.*?\nEND)?$", blocks, re.MULTILINE | re.DOTALL)


def tables() -> Iterator[Means]:
    """Every table of means that the page shows."""
    for table in re.findall(r"\| key \| mean \| values \|\n.*\n((?:\|.*\n)+)", PAGE):
        rows = (row.strip("|").split("|") for row in table.splitlines())
        yield {key.strip(): (float(mean), int(values)) for key, mean, values in rows}


def typed(line: str) -> list[dict[str, Any]]:
    """The records that a line types into the console."""
    return [json.loads(record) for record in line.splitlines() if record.startswith("{")]


@pytest.mark.spark
@pytest.mark.kafka
def test_the_lines_of_the_page_show_its_tables(
    spark: "SparkSession", broker: LocalBroker, jar_directory: Path, tmp_path: Path
) -> None:
    runner, expected, records = None, tables(), list[dict[str, Any]]()
    for line in lines():
        match line.removeprefix(PENSTOCK):
            case "stream start running_avg":
                runner = StreamRunner(catalog.load_plan("running_avg"), spark, broker, tmp_path)
            case "table show running_avg":
                assert runner is not None
                runner.run_until_read(len(records))
                assert found(runner) == next(expected)
            case _:
                printed = told(line, broker, jar_directory)
                records += typed(line)
                if "--from-beginning" in line:
                    assert [json.loads(read) for read in printed.splitlines()] == records
    assert next(expected, None) is None
    assert len(records) == 8


def told(line: str, broker: LocalBroker, jars: Path) -> str:
    """Run a tool as the page does, on the test's own broker, and return what it printed."""
    own = line.replace(TOOLS, f"{sys.executable} -m penstock.infra.kafka_tools --jars {jars} ")
    own = own.replace("127.0.0.1:9092", broker.bootstrap)
    return subprocess.run(
        ["bash", "-c", own], stdout=subprocess.PIPE, text=True, timeout=90, check=True
    ).stdout


def found(runner: StreamRunner) -> Means:
    rows = runner.table("latest/running_avg").to_pylist()
    return {row["key"]: (row["mean"], row["values"]) for row in rows}


def test_every_line_of_the_page_is_a_command_that_there_is() -> None:
    assert len(lines()) == 7
    for line in lines():
        assert line.startswith((TOOLS, PENSTOCK)), line
        if line.startswith(PENSTOCK):
            words, command = line.removeprefix(PENSTOCK).split(), penstock
            while isinstance(command, click.Group):
                command = command.get_command(click.Context(command), words.pop(0))
            assert command is not None, line
            command.make_context(line, words)
