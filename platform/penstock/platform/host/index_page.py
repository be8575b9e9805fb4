"""The start page of a host: what it serves, and how its streams do."""

from collections.abc import Mapping
from html import escape

from penstock.engine.host.control import StreamHealth
from penstock.platform.host.quality_pages import ISOLATION_HEADERS, QUALITY_PAGE_URL

HTML_HEADERS = [(b"content-type", b"text/html; charset=utf-8"), *ISOLATION_HEADERS]

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:3em auto;max-width:46em;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em 1em .3em 0;"
    "border-bottom:1px solid #ddd;vertical-align:top}.failed{color:#b00020}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}a{color:#8ab4f8}"
    "td,th{border-color:#444}.failed{color:#ff8a80}}"
)
_PAGES = (
    ("/health", "the state of each stream as JSON; 503 if one has failed"),
    ("/live", "200 while the process answers"),
    ("/metrics", "metrics for Prometheus"),
)
_QUALITY_PAGE = (QUALITY_PAGE_URL, "expectations of tables and topics, with their results")


def render_index(streams: Mapping[str, StreamHealth], *, has_quality_pages: bool) -> bytes:
    """Return the start page in HTML. It loads nothing, and runs no script."""
    pages = [*_PAGES, _QUALITY_PAGE] if has_quality_pages else _PAGES
    links = "".join(f'<tr><td><a href="{url}">{url}</a></td><td>{text}</td></tr>' for url, text in pages)
    rows = "".join(_render_stream(name, health) for name, health in sorted(streams.items()))
    table = (
        f"<table><tr><th>stream</th><th>state</th><th></th></tr>{rows}</table>" if rows else "<p>none yet</p>"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Penstock host</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>Penstock stream host</h1><table>{links}</table><h2>Streams of this host</h2>{table}"
        "<p><code>penstock status --watch</code> shows their rates, lag and watermarks.</p></body></html>\n"
    ).encode()


def _render_stream(name: str, health: StreamHealth) -> str:
    style = ' class="failed"' if health.state.is_failure else ""
    reason = health.reason.partition("\n")[0]
    return f"<tr{style}><td>{escape(name)}</td><td>{escape(health.state)}</td><td>{escape(reason)}</td></tr>"
