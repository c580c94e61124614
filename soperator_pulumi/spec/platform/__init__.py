"""Spec of the platform below Slurm: one module per part, which is a chart of another project."""
