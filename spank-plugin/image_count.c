#include "image_count.h"

#include <stdio.h>

#include "bounded_lines.h"

#define MOST_BYTES (1024 * 1024) /* if nothing takes the lines: the file is in the pod's memory */
#define BYTES_A_MILLISECOND (10 * 1000 * 1000) /* more than networks and disks give: the importer is its user's */

void image_count(const char *result, uint64_t bytes, uint64_t milliseconds)
{
    const uint64_t most = milliseconds * BYTES_A_MILLISECOND;
    char line[80];

    snprintf(line, sizeof(line), "%s %ju %ju\n", result, (uintmax_t)(bytes < most ? bytes : most), (uintmax_t)milliseconds);
    bounded_lines_append(IMAGE_COUNTS, line, MOST_BYTES);
}
