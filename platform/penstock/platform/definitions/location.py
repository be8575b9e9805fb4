"""The code location that Dagster loads: the definitions of every module in this package.

Loading it imports neither Spark nor Great Expectations, and opens no broker, control store or environment.
"""

from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.discovery import merge_definitions
from penstock.platform.settings import load_settings

defs = merge_definitions(DefinitionsContext(load_settings().settings))
