"""Helm releases: the helm binary, its commands, and its records in the cluster."""
