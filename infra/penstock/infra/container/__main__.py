"""One container's program: `python -m penstock.infra.container broker|spark-master|spark-worker|…`.

The command takes the program's place (exec), so that what a container is told, the program is told: it is
process 1, gets the signals, and its end is the container's end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.infra.container.broker import broker_in_container
from penstock.infra.container.errors import ContainerError
from penstock.infra.errors import InfraError
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.infra.local.spark import spark_home
from penstock.infra.ports import answers

PASSWORD = "PGPASSWORD"  # noqa: S105  the variable's name, which PostgreSQL's clients decide


def broker(asked: argparse.Namespace) -> None:
    """Format the broker's folder when it is new, and become the broker."""
    _become(
        broker_in_container(asked.address, asked.node, asked.voters, asked.cluster, asked.data, asked.jars),
        {},
    )


def master(asked: argparse.Namespace) -> None:
    """Become Spark's master."""
    arguments = ["--host", asked.host, "--port", str(asked.port), "--webui-port", str(asked.pages)]
    _become([*_spark_class("master.Master"), *arguments], _spark_environment(asked.jars))


def worker(asked: argparse.Namespace) -> None:
    """Become one of Spark's workers."""
    size = ["--cores", str(asked.cores), "--memory", asked.memory]
    places = ["--webui-port", str(asked.pages), "--work-dir", str(asked.work)]
    _become([*_spark_class("worker.Worker"), *size, *places, asked.master], _spark_environment(asked.jars))


def with_password(asked: argparse.Namespace) -> None:
    """Become another command, which finds PostgreSQL's password where its clients look for it."""
    try:
        password = asked.file.read_text("utf-8").strip()
    except OSError as error:
        raise ContainerError(
            f"The password file {asked.file} cannot be read: {error.strerror}. Give the container that secret."
        ) from error
    _become(asked.command, {PASSWORD: password})


def other(asked: argparse.Namespace) -> None:
    """Become another command, which needs nothing of us."""
    _become(asked.command, {})


def healthy(asked: argparse.Namespace) -> None:
    """End with 0 when something answers at the address, with 1 when nothing does."""
    host, _, port = asked.address.rpartition(":")
    if not answers(host, int(port), 3):
        raise ContainerError(f"Nothing answers at {asked.address}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a container is started for."""
    asked = _parser().parse_args(arguments)
    try:
        asked.do(asked)
    except InfraError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.container", description=main.__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("broker", help=broker.__doc__)
    one.add_argument("--node", type=int, required=True, help="this node's number, from 1")
    one.add_argument("--address", required=True, help="host:port that clients and brokers use")
    one.add_argument("--voters", required=True, help="1@host:port,…: the nodes that vote on metadata")
    one.add_argument("--cluster", required=True, help="the cluster's id, 22 characters")
    one.add_argument("--data", type=Path, required=True, help="the folder that holds the broker's data")
    one.add_argument("--jars", type=Path, required=True, help="the folder of Kafka's jars")
    one.set_defaults(do=broker)
    one = commands.add_parser("spark-master", help=master.__doc__)
    one.add_argument("--host", required=True, help="the name that workers and sessions use")
    one.add_argument("--port", type=int, default=7077, help="where workers and sessions connect")
    one.add_argument("--pages", type=int, default=8080, help="where its pages are")
    one.add_argument("--jars", type=Path, required=True, help="the folder of Spark's further jars")
    one.set_defaults(do=master)
    one = commands.add_parser("spark-worker", help=worker.__doc__)
    one.add_argument("--master", required=True, help="spark://host:port")
    one.add_argument("--cores", type=int, default=1, help="cores that jobs may use")
    one.add_argument("--memory", default="1g", help="memory that jobs may use")
    one.add_argument("--pages", type=int, default=8081, help="where its pages are")
    one.add_argument("--work", type=Path, required=True, help="the folder for what jobs leave behind")
    one.add_argument("--jars", type=Path, required=True, help="the folder of Spark's further jars")
    one.set_defaults(do=worker)
    one = commands.add_parser("with-password", help=with_password.__doc__)
    one.add_argument("file", type=Path, help="the file that holds the password and nothing else")
    one.add_argument("command", nargs=argparse.REMAINDER, help="the command, with its arguments")
    one.set_defaults(do=with_password)
    one = commands.add_parser("exec", help=other.__doc__)
    one.add_argument("command", nargs=argparse.REMAINDER, help="the command, with its arguments")
    one.set_defaults(do=other)
    one = commands.add_parser("healthy", help=healthy.__doc__)
    one.add_argument("address", help="host:port")
    one.set_defaults(do=healthy)
    return parser


def _spark_class(name: str) -> list[str]:
    return [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]


def _spark_environment(jars: Path) -> dict[str, str]:
    found = ensure_jars(jars, ["spark"])
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_DAEMON_CLASSPATH": ":".join(map(str, found)),
    }


def _become(command: Sequence[str], environment: Mapping[str, str]) -> None:
    try:
        os.execvpe(command[0], [*command], {**os.environ, **environment})  # noqa: S606  no shell is wanted
    except (OSError, IndexError) as error:
        raise ContainerError(f"{' '.join(command) or 'No command'} cannot be started: {error}.") from error


if __name__ == "__main__":
    sys.exit(main())
