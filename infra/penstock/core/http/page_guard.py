"""Refuses what a foreign web page sends to a server that has no log-in.

A browser sends requests for any page that its user opens, also to servers on loopback. `Sec-Fetch-Site` and
`Origin` say which page a request comes from. A page can also point its own name at this machine (DNS rebinding);
then `Host` is that name. Programs send none of these headers, except `Host`, and are not refused.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from penstock.core.http.addresses import LOOPBACK_NAME, is_ip_address
from penstock.core.http.asgi import AsgiApplication, Receive, Scope, Send, read_header, refuse

OWN_SITES = {"same-origin", "none"}
"""Values of Sec-Fetch-Site: a page of this server, or the user (an address typed in, a bookmark)."""

SAFE_METHODS = {"GET", "HEAD"}


class PageGuard:
    """An ASGI application that answers 403 to foreign web pages, and passes all else on.

    `hosts` are the names by which browsers reach the server, beside localhost and literal addresses. A page cannot
    take a literal address as its name, so that these need no list. None allows any name, for a server with a token.
    """

    def __init__(self, application: AsgiApplication, hosts: Iterable[str] | None = ()) -> None:
        self._application = application
        self._hosts = None if hosts is None else {LOOPBACK_NAME, *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or pass on a request or a web socket."""
        reason = None if scope["type"] == "lifespan" else self.find_refusal(scope)
        if reason is None:
            await self._application(scope, receive, send)
        else:
            await refuse(scope, receive, send, 403, reason)

    def find_refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused; None if it may pass."""
        return self._check_host(scope) or _check_page(scope)

    def _check_host(self, scope: Scope) -> str | None:
        hosts = read_header(scope, b"host")
        name = _strip_port(hosts[0]) if len(hosts) == 1 else ""
        if name and (self._hosts is None or name in self._hosts or is_ip_address(name)):
            return None
        return f"Refused: {name!r} is not a name of this server. Use localhost or its address, or allow the name."


def _check_page(scope: Scope) -> str | None:
    sites, origins = read_header(scope, b"sec-fetch-site"), read_header(scope, b"origin")
    if any(site not in OWN_SITES for site in sites) and not _is_navigation(scope):
        return "Refused: the request comes from a page of another site."
    own_address = read_header(scope, b"host")[0].lower()
    if any(urlsplit(origin).netloc.lower() != own_address for origin in origins):
        return f"Refused: the request comes from {', '.join(origins)}, which is not this server."
    return None


def _is_navigation(scope: Scope) -> bool:
    """Whether a user follows a link from another site; frames and embedded content are not meant."""
    return (
        scope["type"] == "http"
        and scope["method"] in SAFE_METHODS
        and read_header(scope, b"sec-fetch-mode") == ["navigate"]
        and read_header(scope, b"sec-fetch-dest") == ["document"]
    )


def _strip_port(host: str) -> str:
    """Return the name in a Host header, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
