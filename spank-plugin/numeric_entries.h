/*
 * Directories of the kernel in which entries are numbers: /proc has processes, /proc/self/fd open descriptors.
 */
#ifndef JAIL_NUMERIC_ENTRIES_H
#define JAIL_NUMERIC_ENTRIES_H

/*
 * Call `see` with every entry of the directory at `path` that is a number, until it returns something else than 0, and
 * return that. It is given the descriptor that is being read too, which /proc/self/fd has among its entries.
 * Returns 0 at the directory's end, and -1 with errno when it cannot be read.
 */
int numeric_entries_each(const char *path, int (*see)(int number, int reading, void *context), void *context);

/* The same with an open directory, which is closed at the end. */
int numeric_entries_read(int descriptor, int (*see)(int number, int reading, void *context), void *context);

#endif
