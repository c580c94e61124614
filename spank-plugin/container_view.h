/*
 * The view of a container: an image's tree in place of the jail's, with what the job has in the jail mounted in it.
 *
 * It is made in a jail that has been entered, with the user's rights on files: whatever a path in an image leads to, and
 * whatever a user wants to be mounted, root lends its right to mount and nothing else. So the image's folders are the
 * user's own, and open to the user (umoci unpacks them so), or root's in the store of published images, and open to all.
 *
 *   /                      the tree, and over it a layer in memory, lost with the task; or the tree itself, if it is to keep
 *                          what tasks change: a named container. It is the user's, who may change it at any time
 *   binds                  the jail's submounts and /tmp, but not /home
 *   the home               with --container-mount-home; else an empty folder, as is the job's working directory: Slurm
 *                          goes there before the image's counts
 *   mounts                 of --container-mounts; then, over them,
 *   /proc /sys /dev /run /etc/hosts /etc/resolv.conf /opt/slurm /usr/local/nvidia /var/lib/extrausers
 *                          the jail's, with all that is mounted in them; of /run what is mounted there;
 *                          nothing if a mount of the job has no place for it, as nothing is made in the user's folders
 *   /etc/passwd, /etc/group   the image's, with lines for the user
 */
#ifndef JAIL_CONTAINER_VIEW_H
#define JAIL_CONTAINER_VIEW_H

#include "config.h"
#include "container.h"
#include "failure.h"
#include "person.h"

/* The admin's store of images, if jobs may only read it (images/containers/container_images/published_images.py). */
#define PUBLISHED_IMAGES "/var/lib/soperator/images"

/* Users' copies of images on the node's disk (images/containers/container_images/local_copies.py). */
#define LOCAL_IMAGES "/var/lib/soperator/local-images"

struct container_view {
    const struct jail_config *config;
    const struct container *container;
    const struct person *person;
    const char *tree;      /* path of the image's root in the jail */
    bool keep;             /* no layer over it */
    const char *directory; /* the job's working directory */
    int (*give)(int root, struct failure *failure); /* gets the root when it has all that it needs; NULL: nothing does */
};

/*
 * Build the view in the calling process's mount namespace, whose root is a jail's view, and make it the root. Whatever
 * fails concerns the job alone. Returns 0 or -1.
 */
int container_view_enter(const struct container_view *view, struct failure *failure);

#endif
