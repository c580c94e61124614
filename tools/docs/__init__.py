"""Generators of pages and modules from the sources. Every one has a `FILE` and a `text()`."""
