"""A schema registry over HTTP that stores its schemas in a folder."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.http_server import run_http_server

from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.registry import FileRegistry, RegisteredSchema
from penstock.ingestion.registry.registry_text import RegistryText, from_registry_text, to_registry_text


@contextmanager
def run_registry_server(folder: Path, login: str = "") -> Iterator[str]:
    registry = FileRegistry(folder)
    expected = f"Basic {b64encode(login.encode()).decode()}" if login else None

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self._path_parts() if self._is_authorized() else []:
                case ["schemas", "ids", number]:
                    stored = registry.find_schema(int(number))
                    self._answer(None if stored is None else describe_schema(stored))
                case ["subjects", subject, "versions"]:
                    self._answer([schema.version for schema in registry.list_versions(subject)] or None)
                case ["subjects", subject, "versions", number]:
                    stored = registry.list_versions(subject)
                    version = len(stored) if number == "latest" else int(number)
                    self._answer(schema_to_json(stored[version - 1]) if 0 < version <= len(stored) else None)
                case _:
                    self._answer(None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            subject = self._path_parts()[1]
            if not self._is_authorized():
                self._answer(None)
                return
            schema = from_registry_text(RegistryText(body["schema"], body.get("schemaType", "AVRO")))
            self._answer(schema_to_json(registry.register(subject, schema)))

        def _path_parts(self) -> list[str]:
            return [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]

        def _is_authorized(self) -> bool:
            return expected in (None, self.headers["Authorization"])

        def _answer(self, content: Any) -> None:
            body = json.dumps(content or {"error_code": 40401, "message": "not found"}).encode()
            self.send_response(401 if not self._is_authorized() else 200 if content else 404)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with run_http_server(Handler) as address:
        yield address


def schema_to_json(schema: RegisteredSchema) -> dict[str, Any]:
    return {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        **describe_schema(schema.schema),
    }


def describe_schema(schema: Schema) -> dict[str, str]:
    text, schema_type = to_registry_text(schema)
    return {"schema": text} if schema_type == "AVRO" else {"schema": text, "schemaType": schema_type}
