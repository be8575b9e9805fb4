"""Which records are repeats: ids are remembered from the first record that has one until its horizon is over."""
