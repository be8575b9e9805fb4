"""The foundation, which every other package can import. It imports no other package of Penstock."""
