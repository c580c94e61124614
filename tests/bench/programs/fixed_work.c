/* The same work again and again, as FWQ of LLNL's noise benchmarks does: fixed-work QUANTA STEPS prints the nanoseconds
 * that every quantum of so many steps took, a line each, after the last one. What interrupts a quantum makes it longer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	const long quanta = argc == 3 ? atol(argv[1]) : 0, steps = argc == 3 ? atol(argv[2]) : 0;
	if (quanta < 1 || steps < 1) {
		fputs("fixed-work QUANTA STEPS\n", stderr);
		return 2;
	}
	int64_t *taken = malloc((size_t)quanta * sizeof(*taken));
	if (!taken)
		return 1;
	volatile uint64_t result = 0;
	uint64_t value = 1;
	for (long quantum = 0; quantum < quanta; quantum++) {
		taken[quantum] = 0; /* its page is there before the clock is read */
		const int64_t began = now();
		for (long step = 0; step < steps; step++)
			value = value * 6364136223846793005U + 1442695040888963407U;
		result = value;
		taken[quantum] = now() - began;
	}
	(void)result;
	for (long quantum = 0; quantum < quanta; quantum++)
		printf("%lld\n", (long long)taken[quantum]);
	return fflush(stdout) ? 1 : 0;
}
