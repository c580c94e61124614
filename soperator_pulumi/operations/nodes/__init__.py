"""Nodes of node sets, as Slurm and Kubernetes see them: draining, recreation, registration, removal."""
