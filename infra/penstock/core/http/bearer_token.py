"""Bearer tokens: which requests bear the token of a server, and where a server needs one."""

import hmac

from penstock.core.errors import ServerAccessError
from penstock.core.http.addresses import is_loopback
from penstock.core.http.asgi import AsgiApplication, Receive, Scope, Send, read_header, refuse
from penstock.core.secret import Secret

MIN_TOKEN_LENGTH = 16


class BearerToken:
    """The token that requests must bear: `Authorization: Bearer TOKEN`."""

    def __init__(self, secret: Secret, description: str) -> None:
        if len(secret.reveal()) < MIN_TOKEN_LENGTH:
            raise ServerAccessError(
                f"{description} has fewer than {MIN_TOKEN_LENGTH} characters. "
                "Make one with `openssl rand -hex 24`."
            )
        self._expected = f"Bearer {secret.reveal()}".encode()

    def is_borne_by(self, scope: Scope) -> bool:
        """Return whether a request bears the token; takes the same time for any wrong one."""
        values = read_header(scope, b"authorization")
        return len(values) == 1 and hmac.compare_digest(values[0].encode("latin-1"), self._expected)


class TokenCheck:
    """An ASGI application that answers 401 to requests without the token, and passes all else on."""

    def __init__(self, application: AsgiApplication, token: BearerToken) -> None:
        self._application = application
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or pass on a request."""
        if self._token.is_borne_by(scope):
            await self._application(scope, receive, send)
        else:
            reason = "Refused: send the header 'Authorization: Bearer TOKEN' with the token of this server."
            await refuse(scope, receive, send, 401, reason)


def require_token_beyond_loopback(host: str, token: object | None, server: str, how_to_set: str) -> None:
    """Raise ServerAccessError if other machines reach the host and there is no token."""
    if token is None and not is_loopback(host):
        raise ServerAccessError(
            f"{server} at {host} would answer every machine that reaches it. {how_to_set}, or use 127.0.0.1."
        )
