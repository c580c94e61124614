#include "view_attach.h"

#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "resolve_in_root.h"

int view_attach_on(int place, int mount, const char *step, const char *what, struct failure *failure)
{
    int result = place < 0 || mounts_attach(mount, place) < 0 ? fail(failure, step, what) : 0;

    if (place >= 0)
        close(place);
    return result;
}

int view_attach(int root, int mount, const char *path, struct failure *failure)
{
    struct stat status;
    int place, result;

    if (mount < 0)
        return fail(failure, "mount", path);
    if (fstat(mount, &status) < 0)
        result = fail(failure, "look at", path);
    else if ((place = make_in_root(root, path, S_ISDIR(status.st_mode))) < 0)
        result = fail_volume(failure, "make a mount point in the tree at", path);
    else
        result = view_attach_on(place, mount, "mount in the tree at", path, failure);
    close(mount);
    return result;
}
