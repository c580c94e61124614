"""Sockets that a node's GPUs are attached to, in gres.conf."""
