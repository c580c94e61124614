"""Filling a tree, from its first marker to its last."""
