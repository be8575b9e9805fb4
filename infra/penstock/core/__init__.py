"""What every other package may import: it knows nothing of Penstock's own packages."""
