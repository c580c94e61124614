"""Changes that users made in a tree: found, carried over into the next one, or left behind."""
