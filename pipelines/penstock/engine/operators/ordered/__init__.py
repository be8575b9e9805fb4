"""Order windows: a key's records in their order, cut or kept by policies."""
