/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Accesses to memory that was taken away: the owner's function is called and the access continues;
 * faults of no owner, and signals that another process sends, go to the handler before.
 */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "sigbus_guard.h"

#define BYTES 4096u

/* A page of a file that is cut to nothing */
struct owner {
	uint8_t *page;
	unsigned int repaired;
};

static struct owner owners[2];
static volatile sig_atomic_t earlier; /* calls of the handler before */
static sigjmp_buf back;
static struct sigaction guarded; /* as sigbus_guard_install() left it */

static void
on_earlier(int sig)
{
	(void)sig;
	earlier++;
	siglongjmp(back, 1);
}

static bool
repair(void *opaque, uintptr_t addr)
{
	struct owner *o = opaque;

	if (addr - (uintptr_t)o->page >= BYTES)
		return false;
	errno = EINVAL; /* the thread must not see it */
	o->repaired++;
	return mmap(o->page, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) != MAP_FAILED;
}

static void
take_away(struct owner *o)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	assert_true(fd >= 0);
	o->repaired = 0;
	o->page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(o->page, MAP_FAILED);
	close(fd);
}

static int
setup(void **state)
{
	earlier = 0;
	for (int i = 0; i < 2; i++)
		take_away(&owners[i]);
	return 0;
}

static int
teardown(void **state)
{
	for (int i = 0; i < 2; i++) {
		sigbus_guard_remove(&owners[i]);
		munmap(owners[i].page, BYTES);
	}
	return 0;
}

/* cmocka installs its signal handlers around each function of a test. */
static void
begin(void)
{
	assert_int_equal(sigaction(SIGBUS, &guarded, NULL), 0);
}

static void
write_byte(struct owner *o, uint8_t value)
{
	*(volatile uint8_t *)(o->page + 7) = value;
}

/* True: the handler before has ended the access. */
static bool
is_refused(struct owner *o)
{
	if (sigsetjmp(back, 1) != 0)
		return true;
	write_byte(o, 1);
	return false;
}

static void
test_owner_repairs(void **state)
{
	begin();
	for (int i = 0; i < 2; i++)
		assert_int_equal(sigbus_guard_add(&owners[i], repair), 0);
	assert_int_equal(sigbus_guard_add(&owners[1], repair), 0); /* is there */
	errno = 0;
	write_byte(&owners[1], 0x5a);
	assert_int_equal(errno, 0);
	assert_int_equal(owners[1].page[7], 0x5a);
	assert_int_equal(owners[1].repaired, 1);
	assert_int_equal(owners[0].repaired, 0);
	write_byte(&owners[1], 0x5b); /* no fault any more */
	assert_int_equal(owners[1].repaired, 1);
	write_byte(&owners[0], 1);
	assert_int_equal(owners[0].repaired, 1);
	assert_int_equal(earlier, 0);
}

static void
test_no_owner(void **state)
{
	begin();
	assert_int_equal(sigbus_guard_add(&owners[0], repair), 0);
	assert_true(is_refused(&owners[1]));
	assert_int_equal(earlier, 1);
	sigbus_guard_remove(&owners[0]);
	assert_true(is_refused(&owners[0]));
	assert_int_equal(earlier, 2);
	assert_int_equal(owners[0].repaired, 0);
	sigbus_guard_remove(&owners[0]); /* is not there */
}

/* A signal that was sent has no address. */
static void
test_sent(void **state)
{
	begin();
	assert_int_equal(sigbus_guard_add(&owners[0], repair), 0);
	if (sigsetjmp(back, 1) == 0) {
		raise(SIGBUS);
		fail();
	}
	assert_int_equal(earlier, 1);
	assert_int_equal(owners[0].repaired, 0);
}

static bool
never(void *owner, uintptr_t addr)
{
	(void)owner;
	(void)addr;
	return false;
}

/* A full table; a place that is free again is used. */
static void
test_full(void **state)
{
	char *many = malloc(SIGBUS_GUARD_OWNERS);

	begin();
	assert_non_null(many);
	for (uint32_t i = 0; i < SIGBUS_GUARD_OWNERS; i++)
		assert_int_equal(sigbus_guard_add(many + i, never), 0);
	assert_int_equal(sigbus_guard_add(&owners[0], repair), -ENOSPC);
	assert_int_equal(sigbus_guard_add(many + 77, never), 0);
	sigbus_guard_remove(many + 77);
	assert_int_equal(sigbus_guard_add(&owners[0], repair), 0);
	write_byte(&owners[0], 2);
	assert_int_equal(owners[0].repaired, 1);
	for (uint32_t i = 0; i < SIGBUS_GUARD_OWNERS; i++)
		sigbus_guard_remove(many + i);
	free(many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_owner_repairs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	signal(SIGBUS, on_earlier);
	if (sigbus_guard_install() != 0 || sigaction(SIGBUS, NULL, &guarded) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
