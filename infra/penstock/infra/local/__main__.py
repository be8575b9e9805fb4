"""One action on the local environment: `PENSTOCK_ORDER='{…}' python -m penstock.infra.local ACTION`.

Terraform's `local-exec` calls it without a shell. The order is a JSON document whose form the action
decides; nothing secret is in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.infra.local import detached_programs, kafka_brokers, spark_cluster
from penstock.infra.local.action_requests import (
    BrokerRequest,
    ClusterRequest,
    FolderRequest,
    MasterRequest,
    ProgramRequest,
    UsersRequest,
    WorkerRequest,
    parse_request,
)
from penstock.infra.local.folders import remove_tree

REQUEST_VARIABLE = "PENSTOCK_ORDER"
STOP_TIMEOUT_S = 5.0


def stop_and_remove_program(request: ProgramRequest) -> None:
    """Stop a program and remove its folder."""
    detached_programs.stop_program(Path(request.directory), request.name, STOP_TIMEOUT_S)
    if request.remove:
        remove_tree(Path(request.remove))


def create_folder(request: FolderRequest) -> None:
    """Create a folder."""
    Path(request.directory).mkdir(parents=True, exist_ok=True)


def remove_folder(request: FolderRequest) -> None:
    """Remove a folder and its content."""
    remove_tree(Path(request.directory))


ACTIONS: dict[str, Callable[[str], None]] = {
    "form-cluster": lambda text: kafka_brokers.form_cluster(parse_request(text, ClusterRequest)),
    "remove-cluster": lambda text: kafka_brokers.remove_cluster(parse_request(text, ClusterRequest)),
    "start-broker": lambda text: kafka_brokers.start_broker(parse_request(text, BrokerRequest)),
    "grant-users": lambda text: kafka_brokers.grant_user_access(parse_request(text, UsersRequest)),
    "start-master": lambda text: spark_cluster.start_master(parse_request(text, MasterRequest)),
    "start-worker": lambda text: spark_cluster.start_worker(parse_request(text, WorkerRequest)),
    "end-program": lambda text: stop_and_remove_program(parse_request(text, ProgramRequest)),
    "make-folder": lambda text: create_folder(parse_request(text, FolderRequest)),
    "remove-folder": lambda text: remove_folder(parse_request(text, FolderRequest)),
}


def main(arguments: list[str]) -> int:
    """Run one action; return 1 with the reason if it failed, 2 for wrong usage."""
    if len(arguments) != 1 or arguments[0] not in ACTIONS or REQUEST_VARIABLE not in os.environ:
        sys.stderr.write(f"usage: {REQUEST_VARIABLE}=… python -m penstock.infra.local {'|'.join(ACTIONS)}\n")
        return 2
    try:
        ACTIONS[arguments[0]](os.environ[REQUEST_VARIABLE])
    except PenstockError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
