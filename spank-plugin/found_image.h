/*
 * What the importer has found for a job on this node: later steps of the job start the same image without the importer,
 * which takes several times as long as all the rest of a container's start. A file of root's for every job, in memory.
 */
#ifndef JAIL_FOUND_IMAGE_H
#define JAIL_FOUND_IMAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define FOUND_IMAGES "/run/slurm/found-images"

struct found_image {
    char folder[PATH_MAX];       /* of the image, in the jail */
    char lock[PATH_MAX];         /* the file whose lock keeps the image from being removed; "": the importer is needed */
    char version[PATH_MAX + 80]; /* "INODE SIZE NANOSECONDS PATH" of the image's file; "": of a registry */
};

/* Read what was found last for the same words, which have no control characters but tabs. */
bool found_image_read(uint32_t job_id, const char *asked, struct found_image *found);

/* Note it. What cannot be noted is found by the importer again: no job fails for it. */
void found_image_note(uint32_t job_id, const char *asked, const struct found_image *found);

/* Forget all images of a job that has ended. */
void found_image_forget(uint32_t job_id);

/*
 * Take the image's lock, on the root and with the rights of the calling process. Returns the lock's descriptor, or -1 if
 * the image is gone, is being removed, or if the file that the user means is another one by now.
 */
int found_image_hold(const struct found_image *found, const char *image);

#endif
