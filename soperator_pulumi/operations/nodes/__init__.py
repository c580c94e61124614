"""The nodes of node sets, as Slurm and Kubernetes see them: freed of jobs, renewed, waited for, forgotten."""
