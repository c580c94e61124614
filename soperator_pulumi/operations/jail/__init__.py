"""Trees of the jail, and the Jobs that fill, switch and remove them."""
