/*
 * What went wrong while a jail was being entered: one line that a user understands, and whom it concerns.
 */
#ifndef JAIL_FAILURE_H
#define JAIL_FAILURE_H

/* Whom a failure concerns. The order matters: the worst of a step's tasks is what is reported. */
enum failure_scope {
    FAILURE_NONE = 0,
    FAILURE_JOB,  /* this job alone: the next one may well run on this node */
    FAILURE_NODE, /* every job on this node would fail: it has to be drained */
};

struct failure {
    enum failure_scope scope;
    char text[512]; /* "<step> <path>: <reason>", one line */
};

/*
 * Record a failed system call on `path`, with errno as the reason. It concerns the node, unless memory or processes ran
 * out: a job has limits of its own there (srun --mem=1), and must not be able to drain nodes by them. Returns -1.
 */
int fail(struct failure *failure, const char *step, const char *path);

/* The same, when it concerns this job alone. */
int fail_job(struct failure *failure, const char *step, const char *path);

/* Record a failure in words of its own. Returns -1. */
int fail_saying(struct failure *failure, enum failure_scope scope, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
