/*
 * A job's wishes for a container: the options of srun, sbatch and salloc, and the variables PYXIS_*, with the names and
 * meanings of Pyxis. They are a user's words: nothing here touches a file.
 *
 *   --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|docker://...|PATH
 *   --container-name=NAME[:auto|create|exec|no_exec]   a container that keeps its files, for other steps and jobs
 *   --container-save=PATH                           file of squashfs with the container's files at the first task's end
 *   --container-mounts=SRC[:DST[:FLAGS]][,...]      flags, with "+" between: ro, rw; rbind and bind, which change nothing
 *   --container-workdir=PATH
 *   --[no-]container-mount-home                     default: not
 *   --container-writable, --container-readonly      default: writable, and lost at the task's end
 *   --container-env=NAME[,...]                      variables of the job that win over the image's
 *   --[no-]container-entrypoint                     default: not
 *   --container-entrypoint-log                      show what the entry point prints
 *   --[no-]container-remap-root                     be root, in a user namespace; default: not
 *
 * Options of Pyxis that are not supported are refused in words.
 */
#ifndef JAIL_CONTAINER_H
#define JAIL_CONTAINER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

#define CONTAINER_MAX_MOUNTS 64
#define CONTAINER_LIST_SIZE 8192
#define CONTAINER_NAME_SIZE 65

enum container_option {
    CONTAINER_IMAGE,
    CONTAINER_NAME,
    CONTAINER_SAVE,
    CONTAINER_MOUNTS,
    CONTAINER_WORKDIR,
    CONTAINER_MOUNT_HOME,
    CONTAINER_NO_MOUNT_HOME,
    CONTAINER_WRITABLE,
    CONTAINER_READONLY,
    CONTAINER_ENV,
    CONTAINER_ENTRYPOINT,
    CONTAINER_NO_ENTRYPOINT,
    CONTAINER_ENTRYPOINT_LOG,
    CONTAINER_REMAP_ROOT,
    CONTAINER_NO_REMAP_ROOT,
    CONTAINER_REFUSED,
};

/* An option as users write it. */
struct container_word {
    char *name;           /* without "--" */
    const char *variable; /* NULL: none */
    char *argument;       /* of `--help`; NULL: takes none */
    char *usage;
    enum container_option option;
};

/* All options; the last one has no name. */
extern const struct container_word CONTAINER_WORDS[];

struct container_mount {
    const char *source;
    const char *target;
    bool read_only;
};

struct container {
    char image[PATH_MAX];           /* "": none */
    char name[CONTAINER_NAME_SIZE]; /* "": none */
    char name_flag[8];              /* of the name */
    char save[PATH_MAX];            /* "": nowhere */
    char workdir[PATH_MAX];
    char names[CONTAINER_LIST_SIZE];   /* of --container-env */
    char written[CONTAINER_LIST_SIZE]; /* of --container-mounts, cut into `mounts` */
    struct container_mount mounts[CONTAINER_MAX_MOUNTS];
    size_t mount_count;
    bool has_mounts, has_home, has_writable, has_entrypoint, has_remap; /* by an option: a variable no longer decides */
    bool mount_home, read_only, entrypoint, entrypoint_log, remap_root;
};

/* Take an option with its argument; the same one twice, as Slurm may give it, is one. Returns 0, or -1. */
int container_take(struct container *container, const struct container_word *word, const char *argument,
                   struct failure *failure);

/* True if the job runs in a container, not in the jail. */
bool container_is_wanted(const struct container *container);

/*
 * Take what no option has decided from variables; `get` returns a variable's value, or NULL. Then refuse options without
 * an image and a name. Returns 0, or -1.
 */
int container_complete(struct container *container, const char *(*get)(void *job, const char *name), void *job,
                       struct failure *failure);

/* True if the job's value of the variable wins over the image's: one of Slurm, PMI, the node, of a
 * shell's own, or of --container-env. */
bool container_keeps(const struct container *container, const char *name);

#endif
