"""Bringing entries onto a volume in several processes, and reading them back from there."""
