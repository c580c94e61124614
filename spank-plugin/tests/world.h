/*
 * A container as the plugin finds it, in a mount namespace of the test's own: what the view takes from a container is
 * there, in memory, and a claim with trees.
 */
#ifndef JAIL_WORLD_H
#define JAIL_WORLD_H

#include "../config.h"

#define CLAIM "/run/claim"
#define TREE "aaaaaaaaaaaa"
#define OTHER_TREE "bbbbbbbbbbbb"
#define TREE_PATH CLAIM "/trees/" TREE
#define USER_ID 4711

/* Go there. Both trees hold etc/name with their name in it, nothing else; TREE is active. */
void world_make(void);

/* A configuration with `count` arguments after jail=CLAIM, or the test ends. */
void world_configure(struct jail_config *config, int count, const char *const arguments[]);

/* Go there with a script at `path` in /usr/lib of the worker's image, and a home of the user in the jail. */
void world_make_program(struct jail_config *config, const char *path, const char *script);

/* As slurmstepd opens the jail's view for a job (image_import.h). */
int world_open_jail(void *config, struct failure *failure);

/* Write `text` into a new file. */
void world_write(const char *path, const char *text);

/* Become an ordinary user, as slurmstepd does, for good. */
void world_become_user(void);

/* True if the file at `path` holds `text` (its first bytes). */
int world_holds(const char *path, const char *text);

#endif
