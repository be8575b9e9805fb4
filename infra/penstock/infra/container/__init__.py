"""What the containers of `docker/` run: each command prepares, then becomes the program itself."""
