"""Order windows: a key's records in order, cut or evicted by policies."""
