"""Connections to PostgreSQL that wait for an answer for so long and no longer.

A server that hangs (stopped, or its disk is) keeps its connections: the kernel acknowledges for it, so that neither
keepalives nor a limit of the server's own ever tell. Only who waits can know that it has been too long.
"""

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen


class ImpatientConnection(psycopg.Connection[Any]):
    """Raises OperationalError where no answer has come for `patience_s`, and is closed then.

    Whether the server did what it was asked is not known then, as with one that died: it may do so later.
    """

    patience_s: float = 60.0

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for one answer."""
        limit = self.patience_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as problem:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the server took the question and did not answer within {limit:g} s: does it hang?"
            ) from problem


def connect(patience_s: float, *address: str, **told: Any) -> ImpatientConnection:
    """Connect, with that patience for each statement; `connect_timeout` is for the connecting itself."""
    made = ImpatientConnection.connect(*address, **told)
    made.patience_s = patience_s
    return made
