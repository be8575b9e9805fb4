"""Reads the forms of the console, and refuses those that it must not carry out."""

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from penstock.platform.console.access import Caller, has_valid_token

MAX_FORM_BYTES = 64_000
FORM_TIMEOUT_S = 10.0
FORM_TYPE = "application/x-www-form-urlencoded"


async def read_form(request: Request, caller: Caller, max_bytes: int = MAX_FORM_BYTES) -> Mapping[str, str]:
    """Return the fields of a form. Raises HTTPException for a viewer, a foreign form, or one that is too long."""
    if not caller.is_operator:
        raise HTTPException(403, f"{caller.user or 'You'} may only read here. Ask an operator.")
    if not request.headers.get("content-type", "").startswith(FORM_TYPE):
        raise HTTPException(415, f"Send the form as {FORM_TYPE}.")
    try:
        body = await asyncio.wait_for(_read_body(request, max_bytes), FORM_TIMEOUT_S)
    except TimeoutError:
        raise HTTPException(408, f"The form did not arrive within {FORM_TIMEOUT_S:g} s.") from None
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if not has_valid_token(request, fields.get("token", "")):
        raise HTTPException(
            403, "The form is not from this console, or the console was restarted. Load the page again."
        )
    return fields


async def _read_body(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise HTTPException(413, f"The form is longer than {max_bytes:,} bytes.")
    return bytes(body)
