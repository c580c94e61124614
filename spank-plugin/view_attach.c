#include "view_attach.h"

#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "resolve_in_root.h"

int view_attach(int root, int mount, const char *path, struct failure *failure)
{
    struct stat status;
    int place = -1, result = 0;

    if (mount < 0)
        return fail(failure, "mount", path);
    if (fstat(mount, &status) < 0)
        result = fail(failure, "look at", path);
    else if ((place = make_in_root(root, path, S_ISDIR(status.st_mode))) < 0)
        result = fail_volume(failure, "make a mount point in the tree at", path);
    else if (mounts_attach(mount, place) < 0)
        result = fail(failure, "mount in the tree at", path);
    if (place >= 0)
        close(place);
    close(mount);
    return result;
}
