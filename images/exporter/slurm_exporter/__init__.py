"""Metrics of Slurm: three programs of Slurm are asked in the background, scrapes read the last answers."""
