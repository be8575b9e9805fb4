"""The control store, batches and plans of the tests of definitions."""

from tests.platform.definitions.conftest import make_batch, make_plan, store

__all__ = ["make_batch", "make_plan", "store"]
