"""A worker's watch of slurmd: it opens a port while slurmd answers, and kills a slurmd that hangs."""
