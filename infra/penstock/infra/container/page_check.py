"""Whether a page of a container's own server answers 200."""

import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError

from penstock.infra.container.errors import ContainerError

ANSWER_TIMEOUT_S = 3.0
MAX_SHOWN_BYTES = 2_000


def check_page(url: str) -> None:
    """Raise ContainerError, with the start of the response, unless the page answers 200 in time."""
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S):  # noqa: S310  the caller requires http://
            return
    except HTTPError as error:
        with error:
            shown = error.read(MAX_SHOWN_BYTES).decode("utf-8", "replace").strip()
        raise ContainerError(f"{url} answers {error.code}: {shown}") from None
    except (OSError, HTTPException) as error:
        raise ContainerError(f"{url} does not answer: {error}.") from None
