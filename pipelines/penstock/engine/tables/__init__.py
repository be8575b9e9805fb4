"""The tables and topics that the engine writes: files first, then one commit for each batch."""
