"""Client of a Confluent-compatible schema registry."""

import json
from base64 import b64encode
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from penstock.core.secret import Secret
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.registry_text import RegistryText, from_registry_text, to_registry_text
from penstock.ingestion.registry.schema_registry import RegisteredSchema

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_REQUEST_TIMEOUT_S = 10.0


class HttpRegistry:
    """Client of a registry server. The server enforces its own compatibility rules in addition to ours.

    With a `login` of the form `user:password`, each request uses HTTP basic authentication.
    """

    def __init__(self, url: str, login: Secret | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise RegistryError(
                f"'{url}' is not the address of a schema registry. Start it with http:// or https://."
            )
        self._url = url.rstrip("/")
        self._headers = {"Accept": _CONTENT_TYPE, "Content-Type": _CONTENT_TYPE}
        self._version_cache: dict[tuple[str, int], RegisteredSchema] = {}
        if login is not None:
            self._headers["Authorization"] = f"Basic {b64encode(login.reveal().encode()).decode()}"

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a version, or return the existing version with this schema."""
        text = to_registry_text(schema)
        body = {"schema": text.text, "schemaType": text.schema_type}
        self._send_request(f"subjects/{quote(subject, safe='')}/versions", body)
        reply = self._send_request(f"subjects/{quote(subject, safe='')}", body)
        return RegisteredSchema(subject, reply["version"], reply["id"], schema)

    def list_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """Return every version of a subject, oldest first."""
        path = f"subjects/{quote(subject, safe='')}/versions"
        return tuple(self._read_version(subject, path, number) for number in self._send_request(path) or ())

    def find_schema(self, schema_id: int) -> Schema | None:
        """Return the schema with this id, or None."""
        reply = self._send_request(f"schemas/ids/{schema_id}")
        return None if reply is None else _parse_reply(reply)

    def _read_version(self, subject: str, path: str, number: int) -> RegisteredSchema:
        """Return one version. Versions never change, so each is requested once."""
        if (subject, number) not in self._version_cache:
            reply = self._send_request(f"{path}/{number}")
            self._version_cache[subject, number] = RegisteredSchema(
                subject, reply["version"], reply["id"], _parse_reply(reply)
            )
        return self._version_cache[subject, number]

    def _send_request(self, path: str, body: object = None) -> Any:
        """Return the parsed response, or None if a lookup finds nothing."""
        data = None if body is None else json.dumps(body).encode()
        # The scheme is checked in `__init__`, so this opens no files.
        request = Request(f"{self._url}/{path}", data, self._headers)  # noqa: S310
        try:
            with urlopen(request, timeout=_REQUEST_TIMEOUT_S) as response:  # noqa: S310
                return json.load(response)
        except HTTPError as error:
            with error:
                if error.code == HTTPStatus.NOT_FOUND and body is None:
                    return None
                if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                    raise RegistryError(
                        f"The schema registry at {self._url} refused the login for {path} ({error.code}). "
                        "Check user:password in the secret that kafka.registry_login names."
                    ) from error
                raise self._request_error(
                    path, f"{error.code} {error.read().decode('utf-8', 'replace')}"
                ) from error
        except (URLError, OSError, ValueError) as error:
            raise self._request_error(path, str(error)) from error

    def _request_error(self, path: str, reason: str) -> RegistryError:
        return RegistryError(
            f"The request for {path} to the schema registry at {self._url} failed: {reason}. Check that it is up."
        )


def _parse_reply(reply: Mapping[str, Any]) -> Schema:
    """Return the schema of a reply, which names its type unless it is Avro."""
    return from_registry_text(RegistryText(reply["schema"], reply.get("schemaType", "AVRO")))
