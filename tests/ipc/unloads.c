/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that is not linked with libsofthca but loads it (LIBRARY), as language bindings do:
 * opens the device, and unloads the library with the context closed and with it still open. Threads
 * of the library go on until the process ends.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <softhca/softhca.h>

#define ROUNDS 3
#define FILES 256

typedef int (*open_fn)(const char *name, struct softhca_context **ctx);
typedef int (*close_fn)(struct softhca_context *ctx);

static void *
symbol(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (at == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return at;
}

static void *
open_device(struct softhca_context **ctx)
{
	void *library = dlopen(getenv("LIBRARY"), RTLD_NOW | RTLD_LOCAL);
	open_fn fn;

	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&fn = symbol(library, "softhca_open");
	if (fn(NULL, ctx) != 0)
		exit(3);
	return library;
}

static void
close_device(void *library, struct softhca_context *ctx)
{
	close_fn fn;

	*(void **)&fn = symbol(library, "softhca_close");
	if (fn(ctx) != 0)
		exit(4);
}

/* As if the daemon had ended: the library's thread learns of it. */
static void
end_connections(void)
{
	for (int fd = 3; fd < FILES; fd++) {
		struct sockaddr_un peer = {0};
		socklen_t bytes = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 &&
		    peer.sun_family == AF_UNIX)
			shutdown(fd, SHUT_RDWR);
	}
}

int
main(void)
{
	struct softhca_context *ctx;
	void *library;
	int status;
	pid_t pid;

	alarm(480);
	for (int i = 0; i < ROUNDS; i++) {
		library = open_device(&ctx);
		close_device(library, ctx);
		dlclose(library);
	}
	library = open_device(&ctx);
	dlclose(library);
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 5;
	end_connections();
	usleep(200000);
	library = open_device(&ctx);
	close_device(library, ctx);
	return 0;
}
