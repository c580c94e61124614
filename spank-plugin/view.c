#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "resolve_in_root.h"
#include "view_attach.h"
#include "view_driver.h"
#include "view_proc.h"

static int share(int root, const char *path, uint64_t set, uint64_t cleared, struct failure *failure)
{
    return view_attach(root, mounts_clone(AT_FDCWD, path, true, set, cleared), path, failure);
}

static int read_only(int root, const char *path, struct failure *failure)
{
    return share(root, path, HARMLESS | MOUNT_ATTR_RDONLY, CLOSED, failure);
}

/*
 * The socket of a munged: of a worker, that which no daemon depends on. A pod that a former version of the program made
 * has one munged for all, and its jobs use it, whatever the version of the image: refused, they would drain its node.
 */
static int munge(int root, bool job, struct failure *failure)
{
    const char *source = job && access(MUNGE_OF_JOBS, F_OK) == 0 ? MUNGE_OF_JOBS : "/run/munge";
    int mount = mounts_clone(AT_FDCWD, source, true, HARMLESS | MOUNT_ATTR_RDONLY, CLOSED);

    return mount < 0 ? fail(failure, "mount", source) : view_attach(root, mount, "/run/munge", failure);
}

/* An empty directory in memory that only root can write to, for mount points and the library cache (view_driver.h). */
static int empty(int root, const char *path, struct failure *failure)
{
    static const char *const OPTIONS[] = {"size", "4m", "mode", "0755", NULL};

    return view_attach(root, mounts_new("tmpfs", OPTIONS, HARMLESS | MOUNT_ATTR_NOEXEC), path, failure);
}

/* Message queues are of an IPC namespace, and the container's /dev/mqueue shows those of its own. */
static int own_queues(int root, struct failure *failure)
{
    static const char *const NO_OPTIONS[] = {NULL};

    return view_attach(root, mounts_new("mqueue", NO_OPTIONS, HARMLESS | MOUNT_ATTR_NOEXEC), "/dev/mqueue", failure);
}

static int add_binds(int root, const struct jail_config *config, struct failure *failure)
{
    for (size_t i = 0; i < config->bind_count; i++) {
        const struct jail_bind *bind = &config->binds[i];
        uint64_t set = HARMLESS | (bind->read_only ? MOUNT_ATTR_RDONLY : 0);

        if (share(root, bind->path, set, CLOSED, failure) < 0)
            return -1;
    }
    return 0;
}

/*
 * Add `name` of the spool when it is there: not every step has every part. Read-only, the job's own too: who could write
 * to it could fill the disk that slurmd works on.
 */
static int add_of_spool(int root, const char *spool, const char *name, struct failure *failure)
{
    char path[JAIL_PATH_SIZE + 64];
    int mount;

    snprintf(path, sizeof(path), "%s/%s", spool, name);
    mount = mounts_clone(AT_FDCWD, path, true, HARMLESS | MOUNT_ATTR_RDONLY, CLOSED);
    if (mount < 0 && errno == ENOENT)
        return 0;
    return view_attach(root, mount, path, failure);
}

static int add_spool(int root, const struct view *view, struct failure *failure)
{
    const char *spool = view->config->spool;
    char batch[32];

    snprintf(batch, sizeof(batch), "job%05u", view->job_id); /* Slurm: _make_batch_dir() */
    if (empty(root, spool, failure) < 0 || add_of_spool(root, spool, batch, failure) < 0)
        return -1;
    return add_of_spool(root, spool, "conf-cache", failure);
}

static int add_all(int root, const struct view *view, struct failure *failure)
{
    int proc = make_in_root(root, "/proc", true);
    int result;

    if (proc < 0)
        return fail_volume(failure, "make a mount point in the tree at", "/proc");
    result = view_proc_attach(root, proc, failure);
    close(proc);
    if (result < 0 || share(root, "/sys", HARMLESS | MOUNT_ATTR_RDONLY, 0, failure) < 0 ||
        share(root, "/dev", MOUNT_ATTR_NOSUID, 0, failure) < 0 || empty(root, "/run", failure) < 0 ||
        munge(root, view->job, failure) < 0 || read_only(root, "/opt/slurm", failure) < 0 ||
        read_only(root, "/var/lib/extrausers", failure) < 0 || read_only(root, "/etc/hosts", failure) < 0 ||
        read_only(root, "/etc/resolv.conf", failure) < 0 || add_binds(root, view->config, failure) < 0 ||
        view_driver_attach(root, failure) < 0) /* last: a bind may be /usr/local */
        return -1;
    if (!view->job)
        return 0;
    if (view->config->isolate_ipc && own_queues(root, failure) < 0)
        return -1;
    if (share(root, PMIX_DIRECTORY, HARMLESS, MOUNT_ATTR_NOSYMFOLLOW, failure) < 0)
        return -1;
    return add_spool(root, view, failure);
}

int view_build(const struct view *view, struct failure *failure)
{
    mode_t umask_before;
    int root = mounts_clone(view->tree, "", false, HARMLESS, CLOSED);
    int result;

    if (root < 0)
        return fail(failure, "mount", "the root tree");
    if (mounts_attach(root, view->place) < 0) {
        fail(failure, "mount", "the root tree at its place");
        close(root);
        return -1;
    }
    umask_before = umask(0022); /* a job's umask could make mount points that nobody can enter */
    result = add_all(root, view, failure);
    umask(umask_before);
    if (result == 0)
        return root;
    close(root);
    return -1;
}
