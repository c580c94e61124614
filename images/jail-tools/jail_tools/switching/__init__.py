"""What users changed in a tree, and how it comes into the next one or is undone."""
