"""Connections to PostgreSQL that wait for an answer for so long and no longer.

A server that hangs (stopped, or its disk is) keeps its connections: the kernel acknowledges for it, so that neither
keepalives nor a limit of the server's own ever tell. Only who waits can know that it has been too long.
"""

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen


class QueryTimeoutConnection(psycopg.Connection[Any]):
    """Raises OperationalError where no answer has come for `query_timeout_s`, and is closed then.

    Whether the server did what it was asked is not known then, as with one that died: it may do so later.
    """

    query_timeout_s: float = 60.0

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for one answer."""
        timeout_s = self.query_timeout_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, timeout_s)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the server took the question and did not answer within {timeout_s:g} s: does it hang?"
            ) from error


def connect_with_timeout(
    query_timeout_s: float, *address: str, **connect_arguments: Any
) -> QueryTimeoutConnection:
    """Connect, with that patience for each statement; `connect_timeout` is for the connecting itself."""
    connection = QueryTimeoutConnection.connect(*address, **connect_arguments)
    connection.query_timeout_s = query_timeout_s
    return connection
