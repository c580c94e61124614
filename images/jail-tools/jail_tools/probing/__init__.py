"""The probe of a jail's storage: the volume is tried out in a directory of its own before anything is filled."""
