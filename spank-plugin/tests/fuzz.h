/*
 * Random mutation of lines for the fuzzers, seeded, so that a find can be had again. The sanitizers watch the rest.
 */
#ifndef JAIL_TESTS_FUZZ_H
#define JAIL_TESTS_FUZZ_H

#include <stddef.h>

#define FUZZ_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Take the seconds and the seed from a program's arguments, SECONDS SEED; exits with 64 if there are others. */
void fuzz_begin(int count, char *arguments[]);

/* True until the seconds are over. */
int fuzz_goes_on(void);

/* A number from 0 to below - 1. */
unsigned int fuzz_pick(unsigned int below);

/* Change a line of up to size - 1 bytes at one place; `pieces` are what its parser knows. */
void fuzz_mutate(char *line, size_t size, const char *const *pieces, size_t piece_count);

/* Print the promise and the line, and abort, if the promise is broken. */
void fuzz_promise(int kept, const char *what, const char *line);

#endif
