"""Slurm on any Kubernetes, as Pulumi components."""
