"""The Spark side of the engine: sessions, live streams, and the input of batches."""
