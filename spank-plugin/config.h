/*
 * The configuration: the arguments of the plugin's line in plugstack.conf, and those of jail-login.
 *
 *   jail=PATH              where the claim with the root trees is mounted (required)
 *   bind=PATH[:ro]         a path of the container that the jail sees at the same place; may be repeated
 *   binds=FILE             a file of the container with more of them, one "bind=PATH[:ro]" a line: what a pod has mounted
 *                          belongs to the pod, and not to a configuration that can be newer
 *   spool=PATH             slurmd's spool directory (default /var/spool/slurmd)
 *   isolation=pid,ipc      tasks get a process and an IPC namespace of their own (default: the container's)
 *   containers=MIB         jobs may have containers, each task's with so much memory for changed files (default: refused);
 *                          in the file of binds=, too, since the pod's image has the programs for it
 *   user_namespaces        tasks may make user namespaces, and mount in them (default: refused)
 *
 * Anything else is refused: a misspelt word must not open the jail by a crack.
 */
#ifndef JAIL_CONFIG_H
#define JAIL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

#define JAIL_PATH_SIZE 512
#define JAIL_MAX_BINDS 128

/* Slurm cuts a line of plugstack.conf at 4095 bytes without a word; arguments that come near are refused. */
#define JAIL_MAX_ARGUMENTS_BYTES 3900

struct jail_bind {
    char path[JAIL_PATH_SIZE];
    bool read_only;
};

struct jail_config {
    char jail[JAIL_PATH_SIZE];
    char spool[JAIL_PATH_SIZE];
    char binds_file[JAIL_PATH_SIZE]; /* "": none */
    struct jail_bind binds[JAIL_MAX_BINDS]; /* sorted: what holds another comes first */
    size_t bind_count;
    unsigned int containers_mib; /* 0: refused */
    bool isolate_pid;
    bool isolate_ipc;
    bool user_namespaces;
};

/*
 * Read `count` arguments and the file that `binds=` names into `config`. The file has to be root's, and closed to
 * writes of others. Returns 0, or -1 with all of `config` unusable and `failure` filled in.
 */
int config_load(struct jail_config *config, int count, char *const arguments[], struct failure *failure);

/* Read the arguments alone. */
int config_parse(struct jail_config *config, int count, char *const arguments[], struct failure *failure);

/* Add what stands after `bind=`. config_check has to follow. */
int config_add_bind(struct jail_config *config, const char *value, struct failure *failure);

/* Sort the binds, and refuse what hides something that the jail needs. */
int config_check(struct jail_config *config, struct failure *failure);

#endif
