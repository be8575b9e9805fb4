"""A Confluent-compatible registry over HTTP."""

import json
from base64 import b64encode
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from penstock.ingestion.contracts.schemas import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.registry import Registered

_TYPE = "application/vnd.schemaregistry.v1+json"
_SECONDS = 10.0


class HttpRegistry:
    """Asks a registry server, which keeps rules of its own beside ours.

    With a `login` of the form `user:password` each request says who asks, as HTTP's basic authentication has it.
    """

    def __init__(self, url: str, login: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise RegistryError(
                f"'{url}' is no address of a registry; it has to begin with http:// or https://"
            )
        self._url = url.rstrip("/")
        self._headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        self._versions: dict[tuple[str, int], Registered] = {}
        if login:
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"

    def register(self, subject: str, schema: Schema) -> Registered:
        """Add a version, or return the one that has this schema already."""
        kind = "AVRO" if schema.get("type") == "record" else "JSON"
        body = {"schema": json.dumps(schema), "schemaType": kind}
        self._ask(f"subjects/{quote(subject, safe='')}/versions", body)
        found = self._ask(f"subjects/{quote(subject, safe='')}", body)
        return Registered(subject, found["version"], found["id"], schema)

    def versions(self, subject: str) -> tuple[Registered, ...]:
        """Return every version of a subject, oldest first."""
        place = f"subjects/{quote(subject, safe='')}/versions"
        return tuple(self._version(subject, place, number) for number in self._ask(place) or ())

    def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id, or None where there is none."""
        found = self._ask(f"schemas/ids/{schema_id}")
        parsed: Schema | None = None if found is None else json.loads(found["schema"])
        return parsed

    def _version(self, subject: str, place: str, number: int) -> Registered:
        """One version; it never changes, so it is asked for once."""
        if (subject, number) not in self._versions:
            one = self._ask(f"{place}/{number}")
            schema = json.loads(one["schema"])
            self._versions[subject, number] = Registered(subject, one["version"], one["id"], schema)
        return self._versions[subject, number]

    def _ask(self, place: str, body: object = None) -> Any:
        """Return what the server answers, or None where it knows of nothing there."""
        data = None if body is None else json.dumps(body).encode()
        # The scheme was checked: this opens no files.
        request = Request(f"{self._url}/{place}", data, self._headers)  # noqa: S310
        try:
            with urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                return json.load(response)
        except HTTPError as error:
            with error:
                if error.code == HTTPStatus.NOT_FOUND and body is None:
                    return None
                if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                    raise RegistryError(
                        f"the registry at {self._url} does not let us in to {place} ({error.code}): "
                        "name the place of its user:password in kafka.registry_login, or mend what is there"
                    ) from error
                raise self._failed(
                    place, f"{error.code} {error.read().decode('utf-8', 'replace')}"
                ) from error
        except (URLError, OSError, ValueError) as error:
            raise self._failed(place, str(error)) from error

    def _failed(self, place: str, why: str) -> RegistryError:
        return RegistryError(
            f"the registry at {self._url} was asked for {place} and failed: {why}; is it up?"
        )
