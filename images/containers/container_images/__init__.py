"""Images of containers in jobs: found in a registry or a file, kept unpacked in the user's own store."""
