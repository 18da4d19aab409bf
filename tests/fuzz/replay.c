/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs a fuzz target without libFuzzer: replay FILE|DIRECTORY... feeds it every file in the order
 * of names. Fails without a file.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define INPUT_MAX (1u << 20)

static unsigned int inputs;

static void
replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(INPUT_MAX), *exact;
	size_t n;

	fuzz_check(f != NULL && data != NULL, "%s: %s", path, strerror(errno));
	n = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	/* exactly as large as the input, so that a sanitizer detects reads beyond it */
	exact = malloc(n != 0 ? n : 1);
	fuzz_check(exact != NULL, "no memory");
	memcpy(exact, data, n);
	free(data);
	if (getenv("FUZZ_VERBOSE") != NULL)
		fprintf(stderr, "%s: %zu bytes\n", path, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	inputs++;
}

static int
is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void
replay(const char *path)
{
	struct dirent **names;
	struct stat st;
	int n;

	fuzz_check(stat(path, &st) == 0, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	n = scandir(path, &names, is_visible, alphasort);
	fuzz_check(n >= 0, "%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		replay(file);
		free(names[i]);
	}
	free(names);
}

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs\n", inputs);
	return inputs != 0 ? 0 : 1;
}
