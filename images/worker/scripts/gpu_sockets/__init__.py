"""Sockets that a node's GPUs are attached to, for gres.conf."""
