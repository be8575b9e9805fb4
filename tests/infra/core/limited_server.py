"""Serves one page in a process that may open 256 files; prints its port."""

import resource
import sys

from tests.infra.core.pages import answer_page

from penstock.core.http.server import HttpServer

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
server = HttpServer(answer_page, "127.0.0.1", 0, name="page")
server.start()
sys.stdout.write(f"{server.port}\n")
sys.stdout.flush()
sys.stdin.read()
server.stop()
