"""State of a stream: immutable sorted runs in files, kept between batches and across restarts."""
