"""Steps between parsing and aggregation: user steps, lookups, explosions."""
