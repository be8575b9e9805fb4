"""Who calls, what they may do, and the token that proves a form to be of this console.

A token belongs to the cookie of a browser, and to this process. A page of another site can neither read the one nor
set the other. `PageGuard` refuses such pages before; the token also holds where a proxy takes their headers away.
"""

import getpass
import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from starlette.requests import Request

from penstock.platform.console.console_context import context_of

SESSION_COOKIE = "penstock_console"
_PROCESS_KEY = secrets.token_bytes(32)

Role = Literal["operator", "viewer"]


@dataclass(frozen=True)
class Caller:
    """A user, as far as known, and their role."""

    user: str
    role: Role

    @property
    def is_operator(self) -> bool:
        """Whether the caller may act."""
        return self.role == "operator"


@dataclass(frozen=True)
class FormSession:
    """The cookie of a browser, and the token of its forms."""

    cookie: str
    is_new: bool

    @property
    def token(self) -> str:
        """The token that forms of this browser carry."""
        return hmac.new(_PROCESS_KEY, self.cookie.encode(), sha256).hexdigest()


def describe_caller(request: Request) -> Caller:
    """Return who calls. Behind a proxy its header names the user; otherwise it is the user of this process."""
    settings = context_of(request).settings.console
    if not settings.user_header:
        return Caller(getpass.getuser(), settings.role)
    users = request.headers.getlist(settings.user_header)
    user = users[0] if len(users) == 1 else ""
    return Caller(user, "operator" if user in settings.operators else "viewer")


def open_session(request: Request) -> FormSession:
    """Return the session of a browser, a new one if it has none."""
    cookie = request.cookies.get(SESSION_COOKIE, "")
    return FormSession(cookie or secrets.token_urlsafe(24), not cookie)


def has_valid_token(request: Request, token: str) -> bool:
    """Return whether a form comes from a page of this console in this browser."""
    session = open_session(request)
    return not session.is_new and hmac.compare_digest(session.token, token)
