"""The watch of slurmctld or slurmdbd in its container: a port is open while the daemon answers."""
