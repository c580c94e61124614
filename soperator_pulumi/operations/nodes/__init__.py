"""Nodes of node sets, as Slurm and Kubernetes see them: drained, recreated, awaited, removed."""
