/*
 * A small harness: every TEST runs in a process of its own, so that it may change roots, namespaces and identities.
 */
#ifndef JAIL_HARNESS_H
#define JAIL_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

#define TEST(name)                                                                                                     \
    static void name(void);                                                                                           \
    __attribute__((constructor)) static void add_##name(void)                                                         \
    {                                                                                                                  \
        test_add(#name, name);                                                                                        \
    }                                                                                                                  \
    static void name(void)

/* Ends the test. */
#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)

/* `text` has to hold `part`. */
#define CHECK_SAYS(text, part) test_check_says((text), (part), __FILE__, __LINE__)

void test_add(const char *name, void (*function)(void));
void test_check(bool holds, const char *condition, const char *file, int line);
void test_check_says(const char *text, const char *part, const char *file, int line);

/* Wait for a child process; return its exit code, or 128 + the signal that ended it. */
int test_await(int child);

/* Run `function` in a child process and return its exit code, or 128 + the signal that ended it. */
int test_in_child(int (*function)(void *), void *argument);

#endif
