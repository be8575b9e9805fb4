"""Whether an address or a name means this machine alone."""

from ipaddress import ip_address

LOOPBACK_NAME = "localhost"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host; a name other than `localhost` may be reached by others."""
    if host.lower() == LOOPBACK_NAME:
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def is_ip_address(host: str) -> bool:
    """Return whether a host is a literal address, in brackets if it is one of IPv6."""
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
