/*
 * hostlist_create_dims for slurmctld, by LD_PRELOAD: a list of more hosts than HOSTLIST_MAX is no list.
 *
 * slurmctld makes all names of a list that a user sends, under the locks that every job needs: "x[0-9999][0-9999]" of one
 * step keeps it for hours. job_submit.lua sees the lists of jobs alone, and no step's.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef void *(*create_function)(const char *, int);

/* Counts stay below this: a product of two does not overflow. */
#define MANY UINT32_MAX

static uint64_t at_most_many(uint64_t count)
{
    return count < MANY ? count : MANY;
}

/*
 * Hosts of the ranges between brackets, as "0-9,12": 11. Moves to the closing bracket, or the end. Whatever else is there
 * counts as too many: Slurm reads numbers by strtoul, with signs and blanks, and takes the innermost of several brackets.
 */
static uint64_t hosts_of_ranges(const char **place)
{
    uint64_t sum = 0;

    if ((*place)[strspn(*place, "0123456789-,")] != ']') {
        *place += strlen(*place);
        return MANY;
    }
    while (**place && **place != ']') {
        char *end;
        unsigned long low = strtoul(*place, &end, 10), high = low;

        if (*end == '-' && isdigit((unsigned char)end[1]))
            high = strtoul(end + 1, &end, 10);
        sum = at_most_many(sum + 1 + (high > low ? at_most_many(high - low) : 0));
        *place = end;
        while (**place && **place != ',' && **place != ']')
            (*place)++;
        if (**place == ',')
            (*place)++;
    }
    return sum;
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

/* A number of hosts is needed: without one no list is refused. */
static uint64_t limit(void)
{
    const char *most = getenv("HOSTLIST_MAX");

    return most ? strtoull(most, NULL, 10) : MANY;
}

static void *create(const char *name, const char *list, int dims)
{
    create_function real = (create_function)dlsym(RTLD_NEXT, name);

    if (!real || (list && hosts_of(list) > limit()))
        return NULL;
    return real(list, dims);
}

EXPORTED void *hostlist_create_dims(const char *list, int dims)
{
    return create("hostlist_create_dims", list, dims);
}

EXPORTED void *slurm_hostlist_create_dims(const char *list, int dims)
{
    return create("slurm_hostlist_create_dims", list, dims);
}
