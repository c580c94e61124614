"""Releases of helm charts: the binary of helm, its commands, and its records in the cluster."""
