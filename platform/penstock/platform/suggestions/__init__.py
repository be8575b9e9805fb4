"""Hashtag completion: lookups in the table of the stream `hashtags`, and a web page."""
