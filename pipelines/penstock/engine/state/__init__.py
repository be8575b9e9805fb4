"""Where the state of a stream is kept between batches and across restarts."""
