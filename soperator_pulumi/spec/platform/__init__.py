"""Spec of the platform that Slurm stands on: one module a part, each a chart of another project."""
