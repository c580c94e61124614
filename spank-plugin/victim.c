#include "victim.h"

#include <fcntl.h>
#include <unistd.h>

#define ADJUSTMENT "/proc/self/oom_score_adj"
#define FIRST "1000" /* OOM_SCORE_ADJ_MAX */

int victim_become(struct failure *failure)
{
    int file = open(ADJUSTMENT, O_WRONLY | O_CLOEXEC);
    ssize_t written;

    if (file < 0)
        return fail(failure, "open", ADJUSTMENT);
    written = write(file, FIRST, sizeof(FIRST) - 1);
    if (written < 0)
        fail(failure, "write " FIRST " to", ADJUSTMENT);
    close(file);
    return written < 0 ? -1 : 0;
}
