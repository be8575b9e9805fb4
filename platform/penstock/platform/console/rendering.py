"""Templates: whole pages, and their live blocks. Everything that a template inserts is escaped."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.platform.console.formats import FILTERS

TEMPLATES_FOLDER = Path(__file__).parent / "templates"
LIVE_PREFIX = "live_"
MACROS = "macros.html"


class TemplateRenderer:
    """Renders the templates of the console. A template that names something unknown fails."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)
        # A block that is rendered alone does not run the imports of its file.
        self._environment.globals["ui"] = self._environment.get_template(MACROS).module

    def render_page(self, template: str, model: Mapping[str, Any]) -> str:
        """Return a whole page."""
        return self._environment.get_template(template).render(model)

    def render_blocks(self, template: str, model: Mapping[str, Any]) -> dict[str, str]:
        """Return each live block of a page by its name."""
        loaded = self._environment.get_template(template)
        context = loaded.new_context(dict(model))
        return {
            name: "".join(render(context))
            for name, render in loaded.blocks.items()
            if name.startswith(LIVE_PREFIX)
        }
