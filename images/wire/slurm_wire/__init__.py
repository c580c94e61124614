"""One grammar for every text that Slurm's commands print, or that this project's programs write into its records."""
