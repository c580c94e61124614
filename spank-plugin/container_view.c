#include "container_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "enter_view.h"
#include "mounts.h"
#include "resolve_in_root.h"
#include "view.h"
#include "view_attach.h"

/* In /run of the jail's view: root's, in memory, and of this task's namespace alone. */
#define WORKSHOP "/run/container"

#define HOMES "/home"
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* What a container has from the jail at the same place, where the jail has it. */
static const char *const FROM_JAIL[] = {
    "/proc",            "/sys",       "/dev",              "/run/munge",          "/etc/hosts",
    "/etc/resolv.conf", "/opt/slurm", "/usr/local/nvidia", "/var/lib/extrausers",
};

/* Memory for what the task changes: of the user, so that the layers of the overlay are the user's. */
static int make_workshop(const struct container_view *view, struct failure *failure)
{
    char size[32], files[32], user[32], group[32];
    const char *const options[] = {"size", size, "nr_inodes", files, "mode", "0700", "uid", user, "gid", group, NULL};
    const unsigned int mib = view->config->containers_mib;
    int mount, place, result;

    snprintf(size, sizeof(size), "%um", mib);
    snprintf(files, sizeof(files), "%u", mib * 256); /* a file for 4 KiB: conda and pip make many small ones */
    snprintf(user, sizeof(user), "%u", view->person->user);
    snprintf(group, sizeof(group), "%u", view->person->group);
    if (mkdir(WORKSHOP, 0711) < 0 && errno != EEXIST)
        return fail(failure, "make", WORKSHOP);
    if ((mount = mounts_new("tmpfs", options, HARMLESS)) < 0)
        return fail(failure, "mount", WORKSHOP);
    place = open(WORKSHOP, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    result = place < 0 || mounts_attach(mount, place) < 0 ? fail(failure, "mount", WORKSHOP) : 0;
    if (place >= 0)
        close(place);
    close(mount);
    return result;
}

/* By the mount: the tree of a named container can be on the volume of the mounts in it. */
static bool is_elsewhere(int root, int found)
{
    struct statx of_root, of_found;

    return statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &of_root) < 0 ||
           statx(found, "", AT_EMPTY_PATH, STATX_MNT_ID, &of_found) < 0 || of_root.stx_mnt_id != of_found.stx_mnt_id;
}

static bool has_published(const struct jail_config *config)
{
    for (size_t i = 0; i < config->bind_count; i++)
        if (strcmp(config->binds[i].path, PUBLISHED_IMAGES) == 0)
            return config->binds[i].read_only;
    return false;
}

/* True for a folder of root's in the store of the admin, which no user can write to. */
static bool is_published(const struct jail_config *config, int jail, int folder)
{
    struct stat status;
    int store = has_published(config) ? open_in_root(jail, PUBLISHED_IMAGES) : -1;
    bool published;

    if (store < 0)
        return false;
    published = fstat(folder, &status) == 0 && status.st_uid == 0 && !is_elsewhere(store, folder);
    close(store);
    return published;
}

/* True for a folder of the user's. A process of the user's in /proc has such a folder, too, which is no tree of files. */
static bool is_own(const struct person *person, int folder)
{
    struct stat status;
    struct statfs system;

    return fstat(folder, &status) == 0 && status.st_uid == person->user && fstatfs(folder, &system) == 0 &&
           system.f_type != PROC_SUPER_MAGIC;
}

/* The image's root: the user's, or the admin's, over which there has to be a layer. */
static int open_tree_of_image(const struct container_view *view, int jail, bool *published, struct failure *failure)
{
    struct stat status;
    int tree = open_in_root(jail, view->tree);

    if (tree < 0)
        return fail(failure, "open the image's tree", view->tree);
    *published = !view->keep && is_published(view->config, jail, tree);
    if (fstat(tree, &status) == 0 && S_ISDIR(status.st_mode) && (*published || is_own(view->person, tree)))
        return tree;
    close(tree);
    return fail_with(failure, FAILURE_JOB, "%s is not a folder of the user", view->tree);
}

/*
 * Keep the workshop, and the root that grows in it, out of the user's mounts: what clones / or /run would show the layers,
 * and clone all clones before it, twice as many every time. The overlay itself cannot be made in such a mount.
 */
static int hide_workshop(struct failure *failure)
{
    struct mount_attr attributes = {.propagation = MS_UNBINDABLE};

    return mount_setattr(AT_FDCWD, WORKSHOP, 0, &attributes, sizeof(attributes)) < 0
               ? fail(failure, "keep out of mounts", WORKSHOP)
               : 0;
}

/* Attach the root where it grows. Returns it, or -1 with the mount closed. */
static int place_root(int mount, struct failure *failure)
{
    int place, result = 0;

    if (mkdir(WORKSHOP "/root", 0700) < 0 ||
        (place = openat(AT_FDCWD, WORKSHOP "/root", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        fail(failure, "make in " WORKSHOP, "the container's root");
        close(mount);
        return -1;
    }
    result = mounts_attach(mount, place) < 0 ? fail(failure, "mount at " WORKSHOP, "the container's root")
                                             : hide_workshop(failure);
    close(place);
    if (result == 0)
        return mount;
    close(mount);
    return -1;
}

/*
 * The tree with the layer over it. With the user's rights: the overlay has for good those of who mounts it. A file of a
 * published image that the user changes is copied into the layer as root's, as it is in the image.
 */
static int mount_layers(int tree, bool published, struct failure *failure)
{
    char lower[32];
    const char *const options[] = {"lowerdir", lower, "upperdir", WORKSHOP "/upper", "workdir", WORKSHOP "/work",
                                   "metacopy", "off", "redirect_dir", "off", NULL};
    int mount;

    snprintf(lower, sizeof(lower), "/proc/self/fd/%d", tree);
    if (mkdir(WORKSHOP "/upper", 0755) < 0 || mkdir(WORKSHOP "/work", 0700) < 0)
        return fail(failure, "make folders in", WORKSHOP);
    if (person_override(published ? PERSON_MODES_AND_OWNERS : PERSON_MODES, failure) < 0)
        return -1;
    if ((mount = mounts_new("overlay", options, HARMLESS)) < 0)
        return fail(failure, "mount over the image's tree", "a layer for changes");
    if (person_override(PERSON_NOTHING, failure) < 0) {
        close(mount);
        return -1;
    }
    return place_root(mount, failure);
}

/* The tree itself, with all that is mounted in it: a clone without would show what lies below. */
static int mount_tree(int tree, struct failure *failure)
{
    int mount = mounts_clone(tree, "", true, HARMLESS, 0);

    return mount < 0 ? fail(failure, "mount", "the container's tree") : place_root(mount, failure);
}

static bool has_line(const char *path, const char *line)
{
    FILE *file = fopen(path, "re");
    char *found = NULL;
    size_t size = 0;
    bool has = false;

    while (file && !has && getline(&found, &size, file) > 0) {
        found[strcspn(found, "\n")] = '\0';
        has = strcmp(found, line) == 0;
    }
    free(found);
    if (file)
        fclose(file);
    return has;
}

/* Add a line to a file of the image. Images without the file get one; what the user cannot write to is left alone. */
static int add_line(int root, const char *path, const char *line, struct failure *failure)
{
    char reached[32];
    struct stat status;
    int found = make_in_root(root, path, false), file = -1, result = 0;

    if (found < 0)
        return fail(failure, "make in the image", path);
    snprintf(reached, sizeof(reached), "/proc/self/fd/%d", found);
    if (fstat(found, &status) == 0 && S_ISREG(status.st_mode) && !has_line(reached, line) &&
        (file = openat(AT_FDCWD, reached, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC)) >= 0 &&
        dprintf(file, "\n%s\n", line) < 0)
        result = fail(failure, "write in the image", path);
    if (file >= 0)
        close(file);
    close(found);
    return result;
}

static int name_user(int root, const struct person *person, struct failure *failure)
{
    char user[1024], group[512];

    snprintf(user, sizeof(user), "%s:x:%u:%u::%s:/bin/sh", person->name, person->user, person->group, person->home);
    snprintf(group, sizeof(group), "%s:x:%u:", person->name, person->group);
    return add_line(root, "/etc/passwd", user, failure) < 0 ? -1 : add_line(root, "/etc/group", group, failure);
}

static bool is_same(int left, int right)
{
    struct stat of_left, of_right;

    return fstat(left, &of_left) < 0 || fstat(right, &of_right) < 0 ||
           (of_left.st_dev == of_right.st_dev && of_left.st_ino == of_right.st_ino);
}

/* Attach a mount where the user wants it, inside of the container. */
static int attach_wanted(int root, int source, const struct container_mount *wanted, struct failure *failure)
{
    struct stat status;
    int place = fstat(source, &status) < 0 ? -1 : make_in_root(root, wanted->target, S_ISDIR(status.st_mode));
    int result;

    if (place < 0)
        return fail(failure, "--container-mounts: make", wanted->target);
    if (is_same(root, place))
        result = fail_with(failure, FAILURE_JOB, "--container-mounts: %s would hide the image", wanted->target);
    else
        result = view_attach(root, mounts_clone(source, "", true, HARMLESS | (wanted->read_only ? MOUNT_ATTR_RDONLY : 0), 0),
                             wanted->target, failure);
    close(place);
    return result;
}

/* True as well if it cannot be told. */
static bool is_in_workshop(int source)
{
    char link[32], path[PATH_MAX + 1];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", source);
    if ((length = readlink(link, path, sizeof(path) - 1)) < 0)
        return true;
    path[length] = '\0';
    return strcmp(path, WORKSHOP) == 0 || strncmp(path, WORKSHOP "/", strlen(WORKSHOP "/")) == 0;
}

/*
 * Mount what the user wants: found in the jail, and only as far as the user gets. Nothing of the root that grows: a clone
 * of it has all that is mounted in it so far, twice as much every time.
 */
static int mount_wanted(int root, int jail, const struct container_mount *wanted, struct failure *failure)
{
    struct statfs system;
    int source = open_in_root(jail, wanted->source), result;

    if (source < 0)
        return fail(failure, "--container-mounts: open", wanted->source);
    if (fstatfs(source, &system) < 0 || system.f_type == PROC_SUPER_MAGIC)
        result = fail_with(failure, FAILURE_JOB, "--container-mounts: %s: of /proc a container has its own", wanted->source);
    else if (is_in_workshop(source))
        result = fail_with(failure, FAILURE_JOB, "--container-mounts: %s: nothing in " WORKSHOP " can be mounted: "
                           "containers are made there", wanted->source);
    else
        result = attach_wanted(root, source, wanted, failure);
    close(source);
    return result;
}

/* True if there is nothing at a path, and what is made there is made in a mount: in files that are not the container's. */
static bool is_hidden(int root, const char *path)
{
    char reached[PATH_MAX];
    char *end;
    int found;
    bool hidden;

    snprintf(reached, sizeof(reached), "%s", path);
    while ((found = open_in_root(root, reached)) < 0 && (end = strrchr(reached, '/')) && end != reached)
        *end = '\0';
    if (found < 0)
        return false;
    hidden = strcmp(reached, path) != 0 && is_elsewhere(root, found);
    close(found);
    return hidden;
}

/* Show what the jail has at a path, with all that is mounted in it, at the same path. */
static int show(int root, const char *path, struct failure *failure)
{
    int mount = mounts_clone(AT_FDCWD, path, true, 0, 0);

    if (mount < 0 && (errno == ENOENT || errno == EACCES))
        return 0; /* the user does not get there in the jail either */
    return view_attach(root, mount, path, failure);
}

/* Of the user, who makes the places in it. */
static int show_run(int root, const struct person *person, struct failure *failure)
{
    char user[32], group[32];
    const char *const options[] = {"size", "4m", "mode", "0755", "uid", user, "gid", group, NULL};

    snprintf(user, sizeof(user), "%u", person->user);
    snprintf(group, sizeof(group), "%u", person->group);
    return view_attach(root, mounts_new("tmpfs", options, HARMLESS | MOUNT_ATTR_NOEXEC), "/run", failure);
}

static bool is_of_run(const char *path)
{
    return strncmp(path, "/run/", strlen("/run/")) == 0;
}

/* What no container sees: with the files of other images, it could change what the user's next one starts. */
static bool is_of_images(const char *path)
{
    return strcmp(path, PUBLISHED_IMAGES) == 0 || strcmp(path, LOCAL_IMAGES) == 0;
}

/*
 * The jail's submounts, in /run or elsewhere, without the stores of images. Of homes the own one is shown, and only when
 * that is wanted.
 */
static int show_binds(int root, const struct container_view *view, bool of_run, struct failure *failure)
{
    const struct jail_config *config = view->config;

    for (size_t i = 0; i < config->bind_count; i++) {
        const char *path = config->binds[i].path;

        if (strcmp(path, HOMES) != 0 && !is_of_images(path) && is_of_run(path) == of_run && show(root, path, failure) < 0)
            return -1;
    }
    return 0;
}

/* What users may mount something else over. */
static int show_shared(int root, const struct container_view *view, struct failure *failure)
{
    if (show_binds(root, view, false, failure) < 0)
        return -1;
    return view->container->mount_home ? show(root, view->person->home, failure) : 0;
}

/*
 * What jobs need as it is: the last mount at a place is what is seen there. A folder that is mounted over /etc keeps what
 * it has, and gets no files: it is the user's, and others may see it.
 */
static int show_needed(int root, const struct container_view *view, struct failure *failure)
{
    if (is_hidden(root, view->config->spool))
        return fail_with(failure, FAILURE_JOB, "--container-mounts hides %s, which jobs need: mount at another place",
                         view->config->spool);
    if (show_run(root, view->person, failure) < 0)
        return -1;
    for (size_t i = 0; i < LENGTH(FROM_JAIL); i++)
        if ((is_of_run(FROM_JAIL[i]) || !is_hidden(root, FROM_JAIL[i])) && show(root, FROM_JAIL[i], failure) < 0)
            return -1;
    if (show_binds(root, view, true, failure) < 0 || show(root, view->config->spool, failure) < 0)
        return -1;
    return show(root, PMIX_DIRECTORY, failure);
}

/* Have a folder at a path, if it is the container's to make. */
static void make_folder(int root, const char *path)
{
    int place = is_hidden(root, path) ? -1 : make_in_root(root, path, true);

    if (place >= 0)
        close(place);
}

static int mount_all(int root, int jail, const struct container_view *view, struct failure *failure)
{
    if (name_user(root, view->person, failure) < 0 || show_shared(root, view, failure) < 0)
        return -1;
    for (size_t i = 0; i < view->container->mount_count; i++)
        if (mount_wanted(root, jail, &view->container->mounts[i], failure) < 0)
            return -1;
    if (show_needed(root, view, failure) < 0)
        return -1;
    make_folder(root, view->person->home);
    make_folder(root, view->directory);
    return 0;
}

static int close_layer(int root, struct failure *failure)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

    return mount_setattr(root, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0
               ? fail(failure, "make read-only", "the container's files")
               : 0;
}

/* With the user's rights on files. Returns a descriptor of the container's root, or -1. */
static int build(const struct container_view *view, struct failure *failure)
{
    mode_t umask_before = umask(0022);
    int jail = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool published = false;
    int tree = jail < 0 ? fail(failure, "open", "the jail's view") : open_tree_of_image(view, jail, &published, failure);
    int root = tree < 0 ? -1 : view->keep ? mount_tree(tree, failure) : mount_layers(tree, published, failure);

    if (tree >= 0)
        close(tree);
    if (root >= 0 && (mount_all(root, jail, view, failure) < 0 ||
                      (view->give && view->give(root, failure) < 0) ||
                      (view->container->read_only && close_layer(root, failure) < 0))) {
        close(root);
        root = -1;
    }
    if (jail >= 0)
        close(jail);
    umask(umask_before);
    return root;
}

int container_view_enter(const struct container_view *view, struct failure *failure)
{
    int root = -1, result = -1;

    if (make_workshop(view, failure) == 0 && person_enter(view->person, failure) == 0) {
        root = build(view, failure);
        if (person_leave(failure) < 0) {
            failure->scope = FAILURE_NODE;
            return -1;
        }
        result = root < 0 ? -1 : enter_root(root, failure);
    }
    if (root >= 0)
        close(root);
    if (result < 0)
        failure->scope = FAILURE_JOB;
    return result;
}
