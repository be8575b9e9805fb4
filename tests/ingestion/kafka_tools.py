"""Kafka's own command-line tools, run by their classes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java

Tool = Callable[..., bytes]


def kafka_tool(jar_directory: Path) -> Tool:
    """Return what runs a tool with its options and what it is given, and returns what it prints."""
    jars = os.pathsep.join(map(str, ensure_jars(jar_directory, ["kafka", "tools"])))
    java = [str(find_java().command), "-XX:TieredStopAtLevel=1", "-cp", jars]

    def run(tool: str, *options: str, given: bytes = b"") -> bytes:
        command = [*java, f"org.apache.kafka.tools.{tool}", *options]
        return subprocess.run(command, input=given, capture_output=True, timeout=90, check=True).stdout

    return run
