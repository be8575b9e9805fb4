"""Upgrades a stream to a changed definition: compares plans, classifies the change, and migrates the state."""
