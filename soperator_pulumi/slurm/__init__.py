"""Client of a live Slurm, without Pulumi."""
