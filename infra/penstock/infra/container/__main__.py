"""One container's program: `python -m penstock.infra.container broker|spark-master|spark-worker|…`.

The command replaces itself with the program (exec). So the program is process 1: it receives the signals, and the
container stops when it exits.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.core.file_access import set_file_access
from penstock.infra.container.container_broker import prepare_container_broker
from penstock.infra.container.errors import ContainerError
from penstock.infra.container.page_check import ANSWER_TIMEOUT_S, check_page
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.infra.local.spark_cluster import find_spark_home
from penstock.infra.ports import accepts_connections
from penstock.infra.spark_daemons import DAEMON_OPTIONS_VARIABLE, daemon_java_options

PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105  the variable's name, which PostgreSQL's clients decide


def exec_broker(args: argparse.Namespace) -> None:
    """Format the broker's folder when it is new, and become the broker."""
    _exec_program(
        prepare_container_broker(args.address, args.node, args.voters, args.cluster, args.data, args.jars),
        {},
    )


def exec_spark_master(args: argparse.Namespace) -> None:
    """Become Spark's master."""
    arguments = ["--host", args.host, "--port", str(args.port), "--webui-port", str(args.pages)]
    _exec_program([*_spark_class_command("master.Master"), *arguments], _spark_environment(args.jars))


def exec_spark_worker(args: argparse.Namespace) -> None:
    """Become one of Spark's workers."""
    resource_arguments = ["--cores", str(args.cores), "--memory", args.memory]
    location_arguments = ["--webui-port", str(args.pages), "--work-dir", str(args.work)]
    _exec_program(
        [*_spark_class_command("worker.Worker"), *resource_arguments, *location_arguments, args.master],
        _spark_environment(args.jars),
    )


def exec_with_password(args: argparse.Namespace) -> None:
    """Become another command, which finds PostgreSQL's password where its clients look for it."""
    try:
        password = args.file.read_text("utf-8").strip()
    except OSError as error:
        raise ContainerError(
            f"The password file {args.file} cannot be read: {error.strerror}. Give the container that secret."
        ) from error
    _exec_program(args.command, {PASSWORD_VARIABLE: password})


def exec_command(args: argparse.Namespace) -> None:
    """Become another command, which needs nothing of us."""
    _exec_program(args.command, {})


def check_health(args: argparse.Namespace) -> None:
    """End with 0 when something answers at the address, over HTTP with a 200, and with 1 otherwise."""
    if args.address.startswith("http://"):
        check_page(args.address)
        return
    host, _, port = args.address.rpartition(":")
    if not accepts_connections(host, int(port), ANSWER_TIMEOUT_S):
        raise ContainerError(f"Nothing answers at {args.address}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a container is started for. Its files are private to its user, which all images share."""
    set_file_access()
    args = _build_parser().parse_args(arguments)
    try:
        args.do(args)
    except PenstockError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.container", description=main.__doc__)
    commands = parser.add_subparsers(required=True)
    subparser = commands.add_parser("broker", help=exec_broker.__doc__)
    subparser.add_argument("--node", type=int, required=True, help="this node's number, from 1")
    subparser.add_argument("--address", required=True, help="host:port that clients and brokers use")
    subparser.add_argument("--voters", required=True, help="1@host:port,…: the nodes that vote on metadata")
    subparser.add_argument("--cluster", required=True, help="the cluster's id, 22 characters")
    subparser.add_argument("--data", type=Path, required=True, help="the folder that holds the broker's data")
    subparser.add_argument("--jars", type=Path, required=True, help="the folder of Kafka's jars")
    subparser.set_defaults(do=exec_broker)
    subparser = commands.add_parser("spark-master", help=exec_spark_master.__doc__)
    subparser.add_argument("--host", required=True, help="the name that workers and sessions use")
    subparser.add_argument("--port", type=int, default=7077, help="where workers and sessions connect")
    subparser.add_argument("--pages", type=int, default=8080, help="where its pages are")
    subparser.add_argument("--jars", type=Path, required=True, help="the folder of Spark's further jars")
    subparser.set_defaults(do=exec_spark_master)
    subparser = commands.add_parser("spark-worker", help=exec_spark_worker.__doc__)
    subparser.add_argument("--master", required=True, help="spark://host:port")
    subparser.add_argument("--cores", type=int, default=1, help="cores that jobs may use")
    subparser.add_argument("--memory", default="1g", help="memory that jobs may use")
    subparser.add_argument("--pages", type=int, default=8081, help="where its pages are")
    subparser.add_argument("--work", type=Path, required=True, help="the folder for what jobs leave behind")
    subparser.add_argument("--jars", type=Path, required=True, help="the folder of Spark's further jars")
    subparser.set_defaults(do=exec_spark_worker)
    subparser = commands.add_parser("with-password", help=exec_with_password.__doc__)
    subparser.add_argument("file", type=Path, help="the file that holds the password and nothing else")
    subparser.add_argument("command", nargs=argparse.REMAINDER, help="the command, with its arguments")
    subparser.set_defaults(do=exec_with_password)
    subparser = commands.add_parser("exec", help=exec_command.__doc__)
    subparser.add_argument("command", nargs=argparse.REMAINDER, help="the command, with its arguments")
    subparser.set_defaults(do=exec_command)
    subparser = commands.add_parser("healthy", help=check_health.__doc__)
    subparser.add_argument("address", help="host:port, or http://host:port/path")
    subparser.set_defaults(do=check_health)
    return parser


def _spark_class_command(name: str) -> list[str]:
    return [str(find_spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]


def _spark_environment(jars: Path) -> dict[str, str]:
    jar_paths = ensure_jars(jars, ["spark"])
    return {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark_home()),
        "SPARK_DAEMON_CLASSPATH": ":".join(map(str, jar_paths)),
        DAEMON_OPTIONS_VARIABLE: f"{daemon_java_options()} {os.environ.get(DAEMON_OPTIONS_VARIABLE, '')}".strip(),
    }


def _exec_program(command: Sequence[str], environment: Mapping[str, str]) -> None:
    try:
        os.execvpe(command[0], [*command], {**os.environ, **environment})  # noqa: S606  no shell is wanted
    except (OSError, IndexError) as error:
        raise ContainerError(f"{' '.join(command) or 'No command'} cannot be started: {error}.") from error


if __name__ == "__main__":
    sys.exit(main())
