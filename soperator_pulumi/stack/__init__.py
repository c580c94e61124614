"""The stack file: its keys, references to other stacks, and the program that deploys what it describes."""
