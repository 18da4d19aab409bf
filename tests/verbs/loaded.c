/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that loads libsofthca at run time.
 *
 * loaded list LIBRARY       says how many devices there are
 * loaded unload LIBRARY     unloads it with an open device, whose daemon then ends
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS 64

static int
list(void *library)
{
	void **(*get_list)(int *) = (void **(*)(int *))dlsym(library, "softhca_get_device_list");
	void (*free_list)(void **) = (void (*)(void **))dlsym(library, "softhca_free_device_list");
	void **devices;
	int n = -1;

	if (get_list == NULL || free_list == NULL)
		return 1;
	devices = get_list(&n);
	if (devices == NULL)
		return 1;
	printf("%d devices\n", n);
	free_list(devices);
	return 0;
}

/* A thread of the library sees the connection end. */
static int
unload(void *library)
{
	int (*open_device)(const char *, void **) =
		(int (*)(const char *, void **))dlsym(library, "softhca_open");
	void *context;

	if (open_device == NULL || open_device(NULL, &context) != 0 || dlclose(library) != 0)
		return 1;
	for (int fd = STDERR_FILENO + 1; fd < FDS; fd++)
		shutdown(fd, SHUT_RDWR);
	usleep(500000);
	printf("unloaded\n");
	return 0;
}

int
main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (library == NULL) {
		fprintf(stderr, "%s: %s\n", argv[0], argc == 3 ? dlerror() : "two arguments");
		return 2;
	}
	return strcmp(argv[1], "list") == 0 ? list(library) : unload(library);
}
