"""Kafka's own command-line tools, run by their classes."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from penstock.infra.kafka_tools import tool_command

RunKafkaTool = Callable[..., bytes]


def make_kafka_tool(jar_directory: Path) -> RunKafkaTool:
    """Return what runs a tool with its options and what it is given, and returns what it prints."""

    def run(tool: str, *options: str, given: bytes = b"") -> bytes:
        command = tool_command(jar_directory, tool, options)
        return subprocess.run(command, input=given, capture_output=True, timeout=90, check=True).stdout

    return run
