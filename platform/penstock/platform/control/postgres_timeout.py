"""PostgreSQL connections with a client-side timeout for each query.

A server that hangs keeps its connections, because its kernel still acknowledges packets. Neither keepalives nor the
server's own timeouts detect this, so the client must limit its wait.
"""

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen


class QueryTimeoutConnection(psycopg.Connection[Any]):
    """A connection that closes itself and raises OperationalError after `query_timeout_s` without a result.

    It is then unknown whether the server has executed the statement, or will do so later.
    """

    query_timeout_s: float = 60.0

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for one result."""
        timeout_s = self.query_timeout_s if timeout is None else timeout
        try:
            return super().wait(gen, interval, timeout_s)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the server accepted the query but did not answer within {timeout_s:g} s; check whether it hangs"
            ) from error


def connect_with_timeout(
    query_timeout_s: float, *address: str, **connect_arguments: Any
) -> QueryTimeoutConnection:
    """Connect with this timeout for each statement; `connect_timeout` limits the connection attempt itself."""
    connection = QueryTimeoutConnection.connect(*address, **connect_arguments)
    connection.query_timeout_s = query_timeout_s
    return connection
