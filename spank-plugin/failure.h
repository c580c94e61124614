/*
 * A failure to enter a jail: one line that a user understands, and whom it concerns.
 */
#ifndef JAIL_FAILURE_H
#define JAIL_FAILURE_H

/* Jobs that a failure concerns. The order matters: the worst of a step's tasks is reported. */
enum failure_scope {
    FAILURE_NONE = 0,
    FAILURE_JOB,    /* this job alone: the next one may well run on this node */
    FAILURE_VOLUME, /* a volume that many nodes share: all may meet it at once, so few may drain for it (report.h) */
    FAILURE_NODE,   /* every job on this node would fail: it has to be drained */
};

struct failure {
    enum failure_scope scope;
    char text[512]; /* "<step> <path>: <reason>", one line */
};

/*
 * Record a failed system call on `path`, with errno as the reason, which decides whom it concerns. Returns -1.
 *
 * A resource that a job or a user can use up, by itself or with others (memory, processes, open files, room and quota of
 * a volume), concerns the job: nobody may be able to drain nodes by it. An error of a file system whose server or disk is
 * away concerns the volume. Everything else concerns the node.
 */
int fail(struct failure *failure, const char *step, const char *path);

/* The same on the shared volume itself: what would concern the node concerns the volume. */
int fail_volume(struct failure *failure, const char *step, const char *path);

/* The same, when it concerns this job alone. */
int fail_job(struct failure *failure, const char *step, const char *path);

/* Record a failure in words of its own. Returns -1. */
int fail_with(struct failure *failure, enum failure_scope scope, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
