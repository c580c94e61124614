/* Files of root's, in the pod's memory, to which slurmstepds append lines at the same time. */
#ifndef JAIL_BOUNDED_LINES_H
#define JAIL_BOUNDED_LINES_H

#include <sys/types.h>

/*
 * Append a line to a file, which is made if it is not there, and which no link replaces. A line that would make the file
 * larger than `most_bytes`, or that cannot be written, is left out: no job fails for it.
 */
void bounded_lines_append(const char *path, const char *line, off_t most_bytes);

#endif
