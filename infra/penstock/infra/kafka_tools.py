"""Kafka's own command-line tools, from the jars of the lock: such as `kafka-console-producer.sh`.

`python -m penstock.infra.kafka_tools ConsoleProducer --bootstrap-server 127.0.0.1:9092 --topic avg`
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java

TOOLS_PACKAGE = "org.apache.kafka.tools"
DEFAULT_JARS_DIRECTORY = Path(".penstock/jars")


def tool_command(directory: Path, tool: str, options: Sequence[str]) -> list[str]:
    """Return the command that runs a tool by its class, as in `consumer.ConsoleConsumer`; its jars are there then.

    Raises InfraError where a jar or Java cannot be had. Whether there is such a tool Java says.
    """
    classpath = os.pathsep.join(map(str, ensure_jars(directory, ["kafka", "tools"])))
    java = [str(find_java().command), "-XX:TieredStopAtLevel=1", "-cp", classpath]
    return [*java, f"{TOOLS_PACKAGE}.{tool}", *options]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of Kafka's tools: its input, its output and its exit code are those of this command."""
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.kafka_tools", description=main.__doc__)
    parser.add_argument(
        "--jars",
        type=Path,
        default=DEFAULT_JARS_DIRECTORY,
        help=f"folder of the jars; default: {DEFAULT_JARS_DIRECTORY}",
    )
    parser.add_argument(
        "tool", help="class of the tool, such as TopicCommand, ConsoleProducer, consumer.ConsoleConsumer"
    )
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of the tool")
    args = parser.parse_args(arguments)
    try:
        command = tool_command(args.jars, args.tool, args.options)
    except PenstockError as error:
        print(error, file=sys.stderr)  # noqa: T201  a command prints to the terminal
        return 1
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
