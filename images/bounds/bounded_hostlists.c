/*
 * hostlist_create_dims for slurmctld and slurmd, by LD_PRELOAD: a list of more hosts than HOSTLIST_MAX is no list.
 *
 * slurmctld makes all names of a list that a user sends, under the locks that every job needs: "x[0-9999][0-9999]" of one
 * step keeps it for hours. job_submit.lua sees the lists of jobs alone, and no step's. slurmd makes those of messages that it
 * passes on, of everyone.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* Counts stay below this: a product of two does not overflow. */
#define MANY UINT32_MAX

static uint64_t at_most_many(uint64_t count)
{
    return count < MANY ? count : MANY;
}

/*
 * Hosts of the ranges between brackets, as "0-9,12": 11, and at least one. Moves to the closing bracket, or the end.
 * Whatever else is there counts as too many: Slurm reads numbers by strtoul, with signs and blanks, and takes the innermost
 * of several brackets.
 */
static uint64_t hosts_of_ranges(const char **place)
{
    const char *end = *place + strspn(*place, "0123456789-,");
    uint64_t sum = 0;

    if (*end != ']') {
        *place += strlen(*place);
        return MANY;
    }
    while (*place < end) {
        char *rest;
        unsigned long low = strtoul(*place, &rest, 10), high = low;

        if (*rest == '-')
            high = strtoul(rest + 1, &rest, 10);
        sum = at_most_many(sum + 1 + (high > low ? at_most_many(high - low) : 0));
        *place = rest + strcspn(rest, ",]");
        if (**place == ',')
            (*place)++;
    }
    return sum ? sum : 1;
}

static uint64_t hosts_of(const char *list)
{
    uint64_t sum = 0, product = 1;

    for (; *list; list++) {
        if (*list == '[') {
            list++;
            product = at_most_many(product * hosts_of_ranges(&list));
            if (!*list)
                break;
        } else if (*list == ',' || isspace((unsigned char)*list)) {
            sum = at_most_many(sum + product);
            product = 1;
        }
    }
    return at_most_many(sum + product);
}

static void *(*create)(const char *list, int dims);
static uint64_t limit = MANY; /* without a number no list is refused */

__attribute__((constructor)) static void prepare(void)
{
    const char *most = getenv("HOSTLIST_MAX");

    create = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "hostlist_create_dims");
    if (most)
        limit = strtoull(most, NULL, 10);
}

EXPORTED void *hostlist_create_dims(const char *list, int dims)
{
    return create && (!list || hosts_of(list) <= limit) ? create(list, dims) : NULL;
}

/* In libslurm, too, both names are of one function. */
EXPORTED void *slurm_hostlist_create_dims(const char *list, int dims) __attribute__((alias("hostlist_create_dims")));
