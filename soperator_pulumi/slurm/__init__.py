"""Talking to a live Slurm. Nothing here knows Pulumi."""
