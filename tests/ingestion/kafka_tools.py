"""Kafka's own command-line tools."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from penstock.infra.kafka_tools import tool_command

RunKafkaTool = Callable[..., bytes]


def make_kafka_tool(jar_directory: Path) -> RunKafkaTool:
    """Return a function that runs a tool with options and standard input, and returns its output."""

    def run(tool: str, *options: str, stdin: bytes = b"") -> bytes:
        command = tool_command(jar_directory, tool, options)
        return subprocess.run(command, input=stdin, capture_output=True, timeout=90, check=True).stdout

    return run
