"""A worker's watch: opens a port while slurmd answers, and kills a slurmd that hangs."""
