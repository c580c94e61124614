// Measurements of a node, by a program that needs nothing of the jail: linked statically, at /opt/slurm in every view.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Exit statuses: a result was printed; the caller was wrong; the surroundings failed, which is no result.
enum { MEASURED = 0, USAGE = 2, NO_RESULT = 3 };

// Seconds of a clock that no admin sets.
double now_seconds(void);

// Prints one line, the result: a value in GB/s (10^9 bytes), and wrong words.
void print_result(const char *check, double gigabytes_per_second, uint64_t errors);

// Prints the reason of no result to stderr and ends with NO_RESULT.
_Noreturn void fail(const char *what, const char *subject);

// All-reduce over TCP in a ring of nodes: `ring` is name=address,... in one order on all nodes.
int measure_ring(const char *ring, int port, size_t mebibytes, double seconds);

// Bandwidth of copies in memory, and words that changed.
int measure_memory(size_t mebibytes, double seconds);

// Bandwidth of a file in a directory: the lower of writing and reading, and words that changed.
int measure_storage(const char *directory, size_t mebibytes);
