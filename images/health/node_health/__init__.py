"""Quick checks of a worker's node, run by slurmd as HealthCheckProgram."""
