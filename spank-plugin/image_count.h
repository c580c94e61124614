/*
 * Starts of containers on this node, a line for every one, in a file of root's. The node's report
 * (container_images/node_report.py) takes them from there and adds them up.
 */
#ifndef JAIL_IMAGE_COUNT_H
#define JAIL_IMAGE_COUNT_H

#include <stdint.h>

#define IMAGE_COUNTS "/run/slurm/container-starts"

/*
 * Add a line: `present` if the image was there, `brought` if this start has brought it, or `failed`; the bytes that it
 * has brought, and the milliseconds that the import took. A line that cannot be written is left out: no job fails for it.
 */
void image_count(const char *result, uint64_t bytes, uint64_t milliseconds);

#endif
