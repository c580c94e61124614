"""The trees of the jail: which there are, and the Jobs that fill, switch and remove them."""
