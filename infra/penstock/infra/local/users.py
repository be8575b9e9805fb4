"""Who may do what on a secured cluster: a user per part of the platform, and nobody else.

Passwords are made on the spot, each in a file of its own; they reach the brokers over TLS, as SCRAM
credentials, and are on no command line, in no state and in no log.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from penstock.infra.local.cluster import Cluster
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.local.private import secret_in

ANSWER_SECONDS = 30.0
ITERATIONS = 4096


@dataclass(frozen=True)
class Permission:
    """One thing that a user may do to all resources of a kind."""

    kind: ResourceType
    operation: AclOperation


def _on(kind: ResourceType, *operations: AclOperation) -> tuple[Permission, ...]:
    return tuple(Permission(kind, operation) for operation in operations)


_T, _G, _O = ResourceType.TOPIC, ResourceType.GROUP, AclOperation
USERS: dict[str, tuple[Permission, ...]] = {
    # Writes, and reads back what it wrote before a crash to go on without gap or repeat.
    "ingestion": (*_on(_T, _O.WRITE, _O.READ, _O.DESCRIBE), *_on(_G, _O.READ)),
    # Reads, and commits how far it is so that others see its lag.
    "host": (*_on(_T, _O.READ, _O.DESCRIBE), *_on(_G, _O.READ, _O.DESCRIBE)),
    # Keeps topics as declared, and neither reads nor writes records.
    "topics": _on(_T, _O.CREATE, _O.ALTER, _O.DELETE, _O.DESCRIBE, _O.ALTER_CONFIGS, _O.DESCRIBE_CONFIGS),
}


def secret_file(directory: Path, user: str) -> Path:
    """Where a user's password is."""
    return directory / "secrets" / user


def grant_users(cluster: Cluster, brokers: int) -> None:
    """Make every user, its password and its permissions. Said again, it changes nothing."""
    client = AdminClient(cluster.admin_settings(brokers))
    wanted: list[UserScramCredentialAlteration] = [_credential(cluster.directory, user) for user in USERS]
    _done(client.alter_user_scram_credentials(wanted), "making Kafka's users")
    bindings = [_binding(user, one) for user, permissions in USERS.items() for one in permissions]
    _done(client.create_acls(bindings), "saying what Kafka's users may do")


def _credential(directory: Path, user: str) -> UserScramCredentialUpsertion:
    password = secret_in(secret_file(directory, user)).encode()
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    return UserScramCredentialUpsertion(user, how, password)


def _binding(user: str, permission: Permission) -> AclBinding:
    return AclBinding(
        permission.kind,
        "*",
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        permission.operation,
        AclPermissionType.ALLOW,
    )


def _done(answers: dict[Any, Future[Any]], doing: str) -> None:
    try:
        _wait(answers.values())
    except KafkaException as error:
        raise LocalEnvironmentError(f"{doing} failed: {error.args[0].str()}. Apply again.") from error


def _wait(answers: Iterable[Future[Any]]) -> None:
    for answer in answers:
        answer.result(ANSWER_SECONDS)
