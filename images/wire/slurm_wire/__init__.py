"""Texts that Slurm's commands print, and texts that our programs write into Slurm's records: one grammar of each."""
