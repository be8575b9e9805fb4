"""HTTP servers of the platform: the guard against foreign web pages, bearer tokens, and a server with limits."""
