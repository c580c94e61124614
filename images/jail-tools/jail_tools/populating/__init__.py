"""Filling a tree, from the marker that is written first to the one that is written last."""
