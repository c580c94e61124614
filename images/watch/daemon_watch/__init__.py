"""Watches slurmctld, slurmdbd, or MariaDB in its container: a port is open while the daemon answers."""
