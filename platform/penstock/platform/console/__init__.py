"""The web console: pages of the running platform, rendered on the server, with live updates."""
