"""The local stack: which programs it is made of, how it starts, and how it ends."""
