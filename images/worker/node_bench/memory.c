#include "bench.h"

#include <stdlib.h>
#include <string.h>

// Each word has its own content, so that a wrong address shows as well as a wrong bit.
static uint64_t word(size_t index, uint64_t round)
{
	return (index * 0x9E3779B97F4A7C15u) ^ (round & 1 ? ~round : round);
}

int measure_memory(size_t mebibytes, double seconds)
{
	size_t words = mebibytes * 1024 * 1024 / 2 / sizeof(uint64_t), bytes = words * sizeof(uint64_t);
	uint64_t *from = malloc(bytes), *to = malloc(bytes), errors = 0, round = 0;
	double copying = 0, end = now_seconds() + seconds;
	if (!words || !from || !to)
		fail("memory", "not that much");
	do {
		for (size_t at = 0; at < words; at++)
			from[at] = word(at, round);
		memset(to, 0, bytes); // its pages exist before the clock runs
		double began = now_seconds();
		memcpy(to, from, bytes);
		copying += now_seconds() - began;
		for (size_t at = 0; at < words; at++)
			errors += to[at] != word(at, round);
		round++;
	} while (now_seconds() < end);
	// Read and written: twice the bytes, as STREAM counts its copy.
	print_result("memory", 2.0 * (double)bytes * (double)round / copying / 1e9, errors);
	free(from);
	free(to);
	return MEASURED;
}
