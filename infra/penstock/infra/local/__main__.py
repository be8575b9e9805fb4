"""One action on the local environment: `PENSTOCK_ORDER='{…}' python -m penstock.infra.local ACTION`.

Terraform's `local-exec` calls it without a shell. The order is a JSON document whose form the action
decides; nothing secret is in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.infra.errors import InfraError
from penstock.infra.local import kafka, programs, spark
from penstock.infra.local.folders import remove_tree
from penstock.infra.local.orders import (
    BrokerOrder,
    ClusterOrder,
    FolderOrder,
    MasterOrder,
    ProgramOrder,
    UsersOrder,
    WorkerOrder,
    read_order,
)

ORDER = "PENSTOCK_ORDER"
END_SECONDS = 5.0


def end_program(order: ProgramOrder) -> None:
    """End a program, and remove its own folder."""
    programs.stop(Path(order.directory), order.name, END_SECONDS)
    if order.remove:
        remove_tree(Path(order.remove))


def make_folder(order: FolderOrder) -> None:
    """Make a folder."""
    Path(order.directory).mkdir(parents=True, exist_ok=True)


def remove_folder(order: FolderOrder) -> None:
    """Remove a folder with all that is in it."""
    remove_tree(Path(order.directory))


ACTIONS: dict[str, Callable[[str], None]] = {
    "form-cluster": lambda text: kafka.form_cluster(read_order(text, ClusterOrder)),
    "remove-cluster": lambda text: kafka.remove_cluster(read_order(text, ClusterOrder)),
    "start-broker": lambda text: kafka.start_broker(read_order(text, BrokerOrder)),
    "grant-users": lambda text: kafka.grant(read_order(text, UsersOrder)),
    "start-master": lambda text: spark.start_master(read_order(text, MasterOrder)),
    "start-worker": lambda text: spark.start_worker(read_order(text, WorkerOrder)),
    "end-program": lambda text: end_program(read_order(text, ProgramOrder)),
    "make-folder": lambda text: make_folder(read_order(text, FolderOrder)),
    "remove-folder": lambda text: remove_folder(read_order(text, FolderOrder)),
}


def main(arguments: list[str]) -> int:
    """Do one action; 1 with the reason when it failed, 2 when it was asked for wrongly."""
    if len(arguments) != 1 or arguments[0] not in ACTIONS or ORDER not in os.environ:
        sys.stderr.write(f"usage: {ORDER}=… python -m penstock.infra.local {'|'.join(ACTIONS)}\n")
        return 2
    try:
        ACTIONS[arguments[0]](os.environ[ORDER])
    except InfraError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
