/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs stepped_hash in two processes for the same seeds and compares line by line; different seeds
 * must differ.
 *
 *   test_stepped PATH-OF-stepped_hash [COUNT [FIRST [OTHER [MIX]]]]
 *
 * OTHER: the program of the second process. MIX: the last argument of both.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *
start(const char *program, unsigned long first, unsigned long count, const char *mix)
{
	char command[512];

	snprintf(command, sizeof(command), "'%s' %lu %lu %s", program, first, count, mix);
	return popen(command, "r");
}

int
main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 200;
	unsigned long first = argc > 3 ? strtoul(argv[3], NULL, 0) : 1;
	const char *mix = argc > 5 ? argv[5] : "";
	unsigned long equal = 0, repeated = 0;
	uint64_t seed[2], hash[2], last = 0;
	FILE *f[2];

	if (argc < 2)
		return 2;
	f[0] = start(argv[1], first, count, mix);
	f[1] = start(argv[argc > 4 ? 4 : 1], first, count, mix);
	if (f[0] == NULL || f[1] == NULL)
		return 2;
	for (unsigned long i = 0; i < count; i++) {
		for (unsigned int k = 0; k < 2; k++)
			if (fscanf(f[k], "%" SCNu64 " %" SCNx64, &seed[k], &hash[k]) != 2) {
				fprintf(stderr, "process %u ended at seed %lu\n", k, first + i);
				return 1;
			}
		if (hash[0] != hash[1])
			fprintf(stderr,
				"seed %" PRIu64 ": %016" PRIx64 " and %016" PRIx64
				"; repeat: stepped_hash %" PRIu64 " 1 %s in both\n",
				seed[0], hash[0], hash[1], seed[0], mix);
		equal += hash[0] == hash[1];
		repeated += i != 0 && hash[0] == last;
		last = hash[0];
	}
	pclose(f[0]);
	pclose(f[1]);
	printf("%lu of %lu seeds gave the same hash in two processes\n", equal, count);
	if (repeated != 0)
		fprintf(stderr, "%lu hashes equal that of the seed before\n", repeated);
	return equal == count && repeated == 0 ? 0 : 1;
}
