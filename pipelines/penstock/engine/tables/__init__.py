"""Delta tables as the engine writes them: files first, then one commit for each batch."""
