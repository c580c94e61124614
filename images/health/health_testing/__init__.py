"""Made outputs of tools, for tests of the quick checks."""

from pathlib import Path

IMPORT_ROOTS = (str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "wire"))
"""Folders of what is one folder in the image: programs of a node's health, and what images share."""
