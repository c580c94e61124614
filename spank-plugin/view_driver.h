/*
 * The GPU driver in a view: what the container's runtime has put into the container, laid out at the container's start
 * (images/worker/driver). Login nodes and nodes without GPUs have none, and their views stay as they are.
 *
 *   /usr/local/nvidia     libraries in lib64, programs in bin; read-only
 *   /etc/ld.so.cache      the tree's own cache with the driver's libraries, so that programs find them in any
 *                         environment. Made for each view from the tree's cache of now, in /run of the view: it is never
 *                         stale, and nothing is written to the tree. A tree without a cache (no glibc) gets none.
 */
#ifndef JAIL_VIEW_DRIVER_H
#define JAIL_VIEW_DRIVER_H

#include "failure.h"

/* A small root of the container with the driver at its place, and a library cache of the driver alone. */
#define JAIL_DRIVER "/run/slurm/driver"

/* Show the driver, if there is one, in the view at `root`, which has a /run. Returns 0, or -1. */
int view_driver_attach(int root, struct failure *failure);

#endif
