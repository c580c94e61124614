"""Answers of Slurm, for tests."""
