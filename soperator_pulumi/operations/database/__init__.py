"""The cluster's own database, administered over its socket."""
