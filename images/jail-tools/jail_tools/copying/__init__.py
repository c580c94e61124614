"""Parallel copying of entries to a volume, and reading them back."""
