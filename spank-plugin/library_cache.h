/*
 * The dynamic loader's library cache, /etc/ld.so.cache, in glibc's format 1.1 (sysdeps/generic/dl-cache.h).
 */
#ifndef JAIL_LIBRARY_CACHE_H
#define JAIL_LIBRARY_CACHE_H

#include <stddef.h>

struct library_cache {
    char *bytes; /* NULL: none */
    size_t size;
};

/*
 * Make a cache that has what `jail` has, and all entries of `driver`. Of a library that both have, that of the driver
 * counts: it goes with the node's kernel. A jail's cache that is not understood, of another machine or cut short, gives
 * none, as the loader passes over it too. Returns 0, or -1 with errno.
 */
int library_cache_merge(const struct library_cache *jail, const struct library_cache *driver,
                        struct library_cache *merged);

#endif
