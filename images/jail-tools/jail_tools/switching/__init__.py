"""Users' changes of a tree: found, carried over into the next one, or left behind."""
