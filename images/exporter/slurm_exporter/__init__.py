"""Metrics of Slurm: a background thread asks three programs of Slurm, and scrapes read the last answers."""
