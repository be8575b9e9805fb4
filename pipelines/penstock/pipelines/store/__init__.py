"""Where tables lie: in a folder, or below an address of an object store."""

from penstock.pipelines.store.address import Address, Store
from penstock.pipelines.store.place import Place, place_below, place_of

__all__ = ["Address", "Place", "Store", "place_below", "place_of"]
