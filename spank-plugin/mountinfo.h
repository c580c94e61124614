/*
 * Mounts of a process, as in /proc/<pid>/mountinfo.
 */
#ifndef JAIL_MOUNTINFO_H
#define JAIL_MOUNTINFO_H

struct mountinfo_line {
    unsigned int id;
    unsigned int parent; /* the mount that it is mounted on */
    const char *root;  /* the part of the file system that is mounted */
    const char *point; /* where, as the process sees it */
};

/*
 * Call `see` with every line of the file at `path`, until it returns something else than 0, and return that.
 * Returns 0 when the file ends, and -1 with errno when it cannot be read; EBADMSG: it has a line that is not understood.
 */
int mountinfo_each(const char *path, int (*see)(const struct mountinfo_line *line, void *context), void *context);

#endif
