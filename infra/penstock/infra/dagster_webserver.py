"""Dagster's webserver behind a guard: web pages of other sites cannot steer it.

Dagster has no log-in, and answers whatever reaches its port. `--allow-host NAME` names the server for browsers that
reach it by another name than localhost or its address. All other arguments are Dagster's.
"""

import argparse
import runpy
import sys
from collections.abc import Sequence
from typing import Any

import uvicorn

from penstock.core.http.asgi import AsgiApplication
from penstock.core.http.page_guard import PageGuard

WEBSERVER_MODULE = "dagster_webserver"


def guard_served_applications(hosts: Sequence[str]) -> None:
    """Guard each application that this process serves with uvicorn from now on."""
    serve = uvicorn.run

    def serve_guarded(application: AsgiApplication, *arguments: Any, **options: Any) -> None:
        serve(PageGuard(application, hosts), *arguments, **options)

    uvicorn.run = serve_guarded  # type: ignore[assignment]


def main(arguments: list[str]) -> None:
    """Replace this program with Dagster's webserver."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--allow-host", action="append", default=[])
    options, webserver_arguments = parser.parse_known_args(arguments)
    guard_served_applications(options.allow_host)
    sys.argv = ["dagster-webserver", *webserver_arguments]
    runpy.run_module(WEBSERVER_MODULE, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
