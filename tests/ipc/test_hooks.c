/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs with hooked memory functions (hooks.h), by patched relocations in every loaded object
 * and by LD_PRELOAD. Registering, using, returning and inheriting memory works nevertheless, even
 * if the hooks write to the very pages that are being replaced.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks.h"
#include "ipc_rig.h"

#define SECONDS RIG_TIMEOUT_S /* a store that hangs ends the process */
#define ROUNDS 3
#define PRELOADED "SOFTHCA_TEST_PRELOADED"

RIG_OF_ALL(rig)

static int
differs(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %lu instead of %lu\n", what, (unsigned long)got, (unsigned long)want);
	return 1;
}

/* The child has its own copy at the same address. */
static int
inherited(uint8_t *buf)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int bad = !peer_verify(buf, PEER_BYTES, 6);

		alarm(SECONDS);
		memset(buf, 0xee, PEER_BYTES);
		_exit(bad);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return differs("child of fork()", (uint64_t)status, 0) + !peer_verify(buf, PEER_BYTES, 6);
}

/* Memory becomes shared and private again while the program stores to it. */
static int
use_memory(uint8_t *buf)
{
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .buf = buf};
	struct softhca_wc wc;
	struct peer a, b;
	int bad = 0;

	peer_fill(buf, PEER_BYTES, 5);
	bad += differs("open", (uint64_t)peer_open(&a, rig.path[0], &cfg), 0);
	cfg.buf = NULL;
	bad += differs("open", (uint64_t)peer_open(&b, rig.path[1], &cfg), 0);
	if (bad != 0)
		return bad;
	bad += !peer_verify(buf, PEER_BYTES, 5);
	peer_fill(buf, PEER_BYTES, 6);
	bad += differs("connect", (uint64_t)peer_connect_pair(&a, &b), 0);
	bad += differs("post", (uint64_t)peer_post(&a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 65536, 0), 0);
	bad += differs("WRITE", (uint64_t)peer_wait(&a, &wc, SECONDS), 0);
	bad += !peer_verify(b.buf, 65536, 6);
	bad += inherited(buf);
	peer_close(&a);
	peer_close(&b);
	bad += !peer_verify(buf, PEER_BYTES, 6);
	memset(buf, 0, PEER_BYTES);
	return bad;
}

/* book: the hooks' counters, on the first page of the buffer, before its data */
static int
use_memory_hooked(volatile uint64_t **book)
{
	uint8_t *mem = mmap(NULL, PEER_BYTES + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int bad = mem == MAP_FAILED;

	*book = (volatile uint64_t *)mem;
	for (int i = 0; i < ROUNDS && bad == 0; i++)
		bad = use_memory(mem + 64);
	if (bad == 0)
		bad = differs("hooks called by the library", **book, 0);
	munmap(NULL, 0); /* check that the hook is called */
	bad += differs("hooks called by the program", **book, 1);
	*book = NULL;
	return bad;
}

static int
child_with_patches(int sock, void *arg)
{
	alarm(SECONDS);
	if (hooks_patch() == 0) {
		fprintf(stderr, "no relocation names a function to hook\n");
		return 1;
	}
	return use_memory_hooked(&hooks_book);
}

static void
patched_relocations(void **state)
{
	int sock;
	pid_t pid = rig_fork(child_with_patches, NULL, &sock);

	rig_join(pid);
	close(sock);
}

/* Runs in the program that was started with the hooks preloaded. */
static int
main_preloaded(const char *paths)
{
	volatile uint64_t **book = (volatile uint64_t **)dlsym(RTLD_DEFAULT, "hooks_book");

	alarm(SECONDS);
	if (book == &hooks_book)
		book = (volatile uint64_t **)dlsym(RTLD_NEXT, "hooks_book");
	if (book == NULL || sscanf(paths, "%95s %95s", rig.path[0], rig.path[1]) != 2) {
		fprintf(stderr, "the hooks are not loaded\n");
		return 1;
	}
	return use_memory_hooked(book) != 0;
}

/* LD_PRELOAD splits at blanks, so the library is named by a symbolic link without one. */
static void
name_link(char *link, size_t size)
{
	snprintf(link, size, "%s.hooks", rig.path[0]);
}

static int
child_with_preload(int sock, void *arg)
{
	char paths[2 * RIG_PATH_MAX], link[RIG_PATH_MAX + 8];

	snprintf(paths, sizeof(paths), "%s %s", rig.path[0], rig.path[1]);
	name_link(link, sizeof(link));
	setenv("LD_PRELOAD", link, 1);
	setenv(PRELOADED, paths, 1);
	execl("/proc/self/exe", "test_ipc_hooks", NULL);
	perror("exec");
	return 1;
}

static void
preloaded(void **state)
{
	char link[RIG_PATH_MAX + 8];
	int sock;
	pid_t pid;

	if (getenv("HOOKS") == NULL)
		skip(); /* sanitizers must be loaded first */
	name_link(link, sizeof(link));
	assert_int_equal(symlink(getenv("HOOKS"), link), 0);
	pid = rig_fork(child_with_preload, NULL, &sock);
	rig_join(pid);
	unlink(link);
	close(sock);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patched_relocations),
		cmocka_unit_test(preloaded),
	};

	if (getenv(PRELOADED) != NULL)
		return main_preloaded(getenv(PRELOADED));
	return cmocka_run_group_tests_name("ipc-hooks", tests, start, shut_down);
}
