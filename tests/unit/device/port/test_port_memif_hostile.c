/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The memif port and peers that disconnect at any point, send invalid messages, and write anything
 * to shared memory: the link goes down, or frames are dropped and counted, and the next peer can
 * use the port.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include <rte_eal.h>

#include "memif_fake.h"
#include "port/port_memif_impl.h"

static struct hca_port *port;
static uint64_t seed = 42;

static uint32_t
draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

/* A correct peer connects, exchanges frames and disconnects. */
static void
still_well(bool server)
{
	struct hca_port *p = rig_open(server ? "client" : "server", "");

	assert_true(rig_wait(p, true) && rig_wait(port, true));
	rig_send(p, 1, 200);
	rig_expect(port, 1, 200);
	rig_send(port, 2, 200);
	rig_expect(p, 2, 200);
	p->ops->close(p);
	assert_true(rig_wait(port, false));
}

static void
use(unsigned int times)
{
	struct rte_mbuf *m[32];

	for (unsigned int i = 0; i < times; i++) {
		uint16_t n = port->ops->rx(port, 0, m, 32, i), k;

		rte_pktmbuf_free_bulk(m, n);
		for (n = 0; n < 8; n++)
			m[n] = rig_frame(n, 60 + draw(5000));
		k = port->ops->tx(port, 0, m, n, i);
		rte_pktmbuf_free_bulk(m + k, n - k);
		if (i % 16 == 0) {
			port->ops->arm(port, 0, true);
			port->ops->arm(port, 0, false);
		}
	}
}

/* ---- a peer that leaves at each step ---- */

static void
leaves_a_server(void **state)
{
	struct memif_message m;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int last = 0; last <= FAKE_STEPS; last++) {
		for (unsigned int hears = 0; hears < 2; hears++) {
			struct fake f;

			fake_dial(&f);
			fake_memory(&f, 0);
			for (unsigned int step = 0; step < last; step++) {
				assert_true(fake_step(&f, step));
				if (hears != 0 || step + 1 < last)
					fake_hear(&f, &m, NULL);
			}
			use(4);
			fake_leave(&f);
			use(4);
		}
		still_well(true);
	}
	assert_true(port->ops->link_up(port) == false);
	rig_close(port);
}

static void
leaves_a_client(void **state)
{
	(void)state;
	port = rig_open("client", "");
	for (unsigned int last = 0; last <= FAKE_STEPS; last++) {
		struct fake f;

		fake_listen(&f);
		for (unsigned int turn = 0; turn < 2; turn++) {
			assert_true(fake_accept(&f));
			for (unsigned int step = 0; step < last; step++)
				assert_true(fake_serve(&f, step));
			use(4);
			fake_leave(&f);
			use(4);
		}
		close(f.listener);
		unlink(rig_socket());
		still_well(false);
	}
	rig_close(port);
}

/* Many peers that connect and then are silent: they do not block others. */
static void
silent_ones(void **state)
{
	struct fake f[24];
	struct memif_message m;

	(void)state;
	port = rig_open("server", "");
	for (size_t i = 0; i < RTE_DIM(f); i++) {
		fake_dial(&f[i]);
		fake_hear(&f[i], &m, NULL);
		if (i % 2 != 0)
			fake_step(&f[i], 1);
	}
	still_well(true);
	for (size_t i = 0; i < RTE_DIM(f); i++)
		fake_leave(&f[i]);
	rig_close(port);
}

/* ---- a peer that sends wrong messages in the handshake ---- */

/*
 * Execute the steps before `step`, then send this message: the peer is told the reason and refused.
 */
static void
lies(unsigned int step, const struct memif_message *lie, size_t length, int fd, const char *why)
{
	struct memif_message m;
	struct fake f;

	fake_dial(&f);
	fake_memory(&f, 0);
	for (unsigned int i = 0; i < step; i++) {
		assert_true(fake_step(&f, i));
		assert_int_not_equal(fake_hear(&f, &m, NULL), MEMIF_DISCONNECT);
	}
	assert_true(fake_send(&f, lie, length, &fd, fd >= 0));
	assert_int_equal(fake_hear(&f, &m, NULL), MEMIF_DISCONNECT);
	if (strstr(m.disconnect.reason, why) == NULL)
		fail_msg("\"%s\" and not \"%s\"", m.disconnect.reason, why);
	assert_int_equal(fake_hear(&f, &m, NULL), 0);
	fake_leave(&f);
}

static void
lies_to_begin_with(void **state)
{
	struct memif_message m = fake_init();

	(void)state;
	port = rig_open("server", "secret=abc");
	lies(1, &m, sizeof(m), -1, "Secret required");
	m.init.secret[0] = 'x';
	lies(1, &m, sizeof(m), -1, "Incorrect secret");
	m.init.mode = 1;
	lies(1, &m, sizeof(m), -1, "ethernet");
	m.init.id = 5;
	lies(1, &m, sizeof(m), -1, "ID not found");
	m.init.version = 3;
	lies(1, &m, sizeof(m), -1, "version");
	lies(1, &m, 5, -1, "size");
	m.type = MEMIF_CONNECT;
	lies(1, &m, sizeof(m), -1, "Unexpected");
	m.type = 999;
	lies(1, &m, sizeof(m), -1, "Unexpected");
	rig_close(port);
}

static void
lies_about_memory(void **state)
{
	struct memif_message m = fake_region(0, FAKE_SIZE);
	int memory = memfd_create("m", MFD_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC),
	    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(memory, FAKE_SIZE), 0);
	port = rig_open("server", "");
	lies(2, &m, sizeof(m), -1, "memfd");
	lies(2, &m, sizeof(m), zero, "memfd");
	lies(2, &m, sizeof(m), file, "memfd");
	m = fake_region(0, FAKE_SIZE + 1);
	lies(2, &m, sizeof(m), memory, "as long as its file");
	m = fake_region(0, 0);
	lies(2, &m, sizeof(m), memory, "as long as its file");
	m = fake_region(0, UINT64_MAX);
	lies(2, &m, sizeof(m), memory, "address space");
	m = fake_region(256, FAKE_SIZE);
	lies(2, &m, sizeof(m), memory, "region index");
	m = fake_region(0, FAKE_SIZE);
	lies(3, &m, sizeof(m), memory, "region index");
	still_well(true);
	rig_close(port);
	close(memory);
	close(zero);
	close(file);
}

static void
lies_about_rings(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), pipes[2];
	struct memif_message m = fake_ring(true, 0);

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	port = rig_open("server", "");
	lies(3, &m, sizeof(m), -1, "eventfd");
	lies(3, &m, sizeof(m), pipes[1], "eventfd");
	m.add_ring.index = HCA_PORT_MEMIF_QUEUES;
	lies(3, &m, sizeof(m), event, "ring index");
	m = fake_ring(true, 0);
	lies(4, &m, sizeof(m), event, "ring index"); /* again */
	m.add_ring.log2_ring_size = 15;
	lies(3, &m, sizeof(m), event, "ring size");
	m = fake_ring(true, 4);
	lies(3, &m, sizeof(m), event, "aligned");
	m = fake_ring(true, FAKE_SIZE - 128);
	lies(3, &m, sizeof(m), event, "in one of the regions");
	m = fake_ring(true, UINT32_MAX - 7);
	lies(3, &m, sizeof(m), event, "in one of the regions");
	m = fake_ring(true, 0);
	m.add_ring.region = 7;
	lies(3, &m, sizeof(m), event, "in one of the regions");
	m.add_ring.region = 65535;
	lies(3, &m, sizeof(m), event, "in one of the regions");
	m.type = MEMIF_CONNECT;
	lies(3, &m, sizeof(m), -1, "rings are needed");
	lies(4, &m, sizeof(m), -1, "rings are needed");
	still_well(true);
	rig_close(port);
	close(event);
	close(pipes[0]);
	close(pipes[1]);
}

/* Overlapping rings; no cookie; regions and rings added after the link is up. */
static void
lies_at_the_end(void **state)
{
	struct memif_message m;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int turn = 0; turn < 4; turn++) {
		fake_dial(&f);
		fake_memory(&f, 0);
		for (unsigned int step = 0; step < FAKE_STEPS; step++) {
			struct memif_message ring = fake_ring(false, 512);

			if (turn == 1 && step == 5)
				f.to_client->cookie = 0;
			if (turn == 0 && step == 4)
				assert_true(fake_say(&f, &ring, f.event[1]));
			else
				assert_true(fake_step(&f, step));
			fake_hear(&f, &m, NULL);
		}
		if (turn >= 2) {
			assert_int_equal(m.type, MEMIF_CONNECTED);
			assert_true(rig_wait(port, true));
			m = turn == 2 ? fake_region(1, FAKE_SIZE) : fake_ring(true, 0);
			assert_true(fake_say(&f, &m, turn == 2 ? f.memory : f.event[0]));
			fake_hear(&f, &m, NULL);
		}
		assert_int_equal(m.type, MEMIF_DISCONNECT);
		assert_true(rig_wait(port, false));
		fake_leave(&f);
	}
	still_well(true);
	rig_close(port);
}

static void *
close_three(void *arg)
{
	const int *fds = arg;

	for (unsigned int i = 0; i < 3; i++)
		close(fds[i]);
	return NULL;
}

/*
 * Unexpected descriptors: sockets whose close() takes a minute, until the listener is closed. The
 * last close() blocks; if it is in the port, a separate thread makes it.
 */
static void
slow_to_close(void **state)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[3];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger linger = {.l_onoff = 1, .l_linger = 60};
	struct memif_message m = fake_init();
	socklen_t len = sizeof(a);
	static char bytes[65536];
	pthread_t closer;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	for (unsigned int i = 0; i < 3; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fds[i], (struct sockaddr *)&a, len);
		setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		usleep(2000);
		while (send(fds[i], bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			;
	}
	fake_dial(&f);
	assert_true(fake_send(&f, &m, sizeof(m), fds, 3));
	assert_true(fake_send(&f, &m, sizeof(m), fds, 3)); /* this message is never read */
	assert_int_equal(pthread_create(&closer, NULL, close_three, fds), 0);
	fake_leave(&f);
	for (unsigned int ms = 0; rig_stats(port).refused == 0 && ms < 10000; ms++)
		usleep(1000);
	assert_int_not_equal(rig_stats(port).refused, 0);
	still_well(true);
	rig_close(port);
	close(listener); /* which unblocks them */
	pthread_join(closer, NULL);
}

/* ---- a peer that writes random bytes into shared memory ---- */

static void
scribble(struct fake *f)
{
	struct memif_ring *r = draw(2000) != 0 ? f->to_server : f->to_client;
	struct memif_desc *d = &r->desc[draw(FAKE_SLOTS)];

	switch (draw(8)) {
	case 0:
		d->offset = draw(2) ? draw(FAKE_SIZE) : draw(UINT32_MAX);
		break;
	case 1:
		d->length = draw(draw(2) ? 20 : draw(2) ? 20000 : UINT32_MAX);
		break;
	case 2:
		d->region = (uint16_t)draw(65536);
		break;
	case 3:
		d = &r->desc[(uint16_t)(r->head - 1) % FAKE_SLOTS];
		d->flags = (uint16_t)draw(4);
		break;
	case 4:
		r->flags = (uint16_t)draw(4);
		break;
	case 5:
		*d = (struct memif_desc){.length = 64, .offset = 8192};
		break;
	default: /* continues, within its ring */
		__atomic_store_n(&f->to_server->head,
				 (uint16_t)(f->to_server->tail + draw(FAKE_SLOTS)),
				 __ATOMIC_RELEASE);
		__atomic_store_n(&f->to_client->head,
				 (uint16_t)(f->to_client->tail + draw(FAKE_SLOTS)),
				 __ATOMIC_RELEASE);
		break;
	}
	if (draw(3000) == 0)
		r->head = (uint16_t)draw(65536);
	if (draw(3000) == 0)
		r->tail = (uint16_t)draw(65536);
}

static void
scribbling_client(void **state)
{
	struct hca_port_memif_stats st;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int turn = 0; turn < 40; turn++) {
		fake_connect(&f, 0);
		assert_true(rig_wait(port, true));
		for (unsigned int i = 0; i < 300; i++) {
			for (unsigned int k = 0; k < 20; k++)
				scribble(&f);
			use(1);
		}
		fake_leave(&f);
		assert_true(rig_wait(port, false));
	}
	st = rig_stats(port);
	assert_int_not_equal(st.rx_bad_buffer, 0);
	assert_int_not_equal(st.rx_too_long, 0);
	assert_int_not_equal(st.rx_too_short, 0);
	assert_int_not_equal(st.rx_bad_chain, 0);
	assert_int_not_equal(st.rx_pkts, 0);
	assert_int_not_equal(st.rx_broken + st.tx_broken, 0);
	assert_true(hca_port_missed(port) != 0);
	still_well(true);
	rig_close(port);
}

/* The port owns the memory, and so the offsets, whatever the descriptors contain. */
static void
scribbling_server(void **state)
{
	struct fake f;

	(void)state;
	port = rig_open("client", "");
	for (unsigned int turn = 0; turn < 4; turn++) {
		fake_listen(&f);
		assert_true(fake_accept(&f));
		for (unsigned int step = 0; step < FAKE_STEPS; step++)
			assert_true(fake_serve(&f, step));
		assert_true(rig_wait(port, true));
		for (unsigned int i = 0; i < 600; i++) {
			for (unsigned int k = 0; k < 20; k++)
				scribble(&f);
			f.to_client->tail = (uint16_t)(f.to_client->head - draw(FAKE_SLOTS));
			f.to_server->tail = (uint16_t)(f.to_server->head - draw(FAKE_SLOTS));
			if (turn == 3 && draw(50) == 0)
				fallocate(f.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  4096, (off_t)f.size - 4096);
			use(1);
		}
		assert_int_not_equal(ftruncate(f.memory, 4096), 0);
		fake_leave(&f);
		close(f.listener);
		unlink(rig_socket());
		assert_true(rig_wait(port, false));
	}
	assert_int_not_equal(rig_stats(port).rx_pkts, 0);
	still_well(false);
	rig_close(port);
}

/* An invalid index takes the link down, in either ring and role. */
static void
broken_indexes(void **state)
{
	struct memif_message m;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int turn = 0; turn < 2; turn++) {
		fake_connect(&f, 0);
		assert_true(rig_wait(port, true));
		if (turn == 0)
			f.to_server->head = FAKE_SLOTS + 1;
		else
			f.to_client->head = FAKE_SLOTS + 1;
		use(1);
		assert_int_equal(fake_hear(&f, &m, NULL), MEMIF_DISCONNECT);
		assert_non_null(strstr(m.disconnect.reason, "beyond"));
		assert_true(rig_wait(port, false));
		fake_leave(&f);
	}
	assert_int_equal(rig_stats(port).rx_broken, 1);
	assert_int_equal(rig_stats(port).tx_broken, 1);
	still_well(true);
	rig_close(port);
}

/*
 * Memory that cannot be sealed is truncated. A single test, because the port installs its handler
 * once, and cmocka removes it after each test.
 */
static void
memory_shrinks(void **state)
{
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int turn = 0; turn < 6; turn++) {
		fake_connect(&f, F_SEAL_SEAL);
		assert_true(rig_wait(port, true));
		f.to_server->head = 10;
		f.to_client->head = FAKE_SLOTS;
		use(turn % 2);
		munmap(f.base, f.size);
		f.base = NULL;
		assert_int_equal(ftruncate(f.memory, turn % 3 == 0 ? 0 : turn % 3 * 4096), 0);
		use(4);
		assert_true(rig_wait(port, false));
		assert_int_equal(rig_stats(port).memory_lost, turn + 1);
		fake_leave(&f);
	}
	/* memory that can be sealed is sealed */
	fake_connect(&f, 0);
	assert_int_not_equal(ftruncate(f.memory, 0), 0);
	fake_leave(&f);
	still_well(true);
	rig_close(port);
}

/* The interrupt descriptor is full and blocking. */
static void *
send_one(void *arg)
{
	struct rte_mbuf *m = arg;
	uint16_t n = port->ops->tx(port, 0, &m, 1, 0);

	return (void *)(uintptr_t)n;
}

static void
blocking_interrupt(void **state)
{
	uint64_t most = UINT64_MAX - 1;
	pthread_t thread;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	for (unsigned int turn = 0; turn < 3; turn++) {
		fake_connect(&f, 0);
		assert_true(rig_wait(port, true));
		f.to_client->head = FAKE_SLOTS;
		assert_int_equal(write(f.event[1], &most, sizeof(most)), sizeof(most));
		assert_int_equal(fcntl(f.event[1], F_SETFL, O_RDWR), 0);
		assert_int_equal(pthread_create(&thread, NULL, send_one, rig_frame(1, 100)), 0);
		pthread_join(thread, NULL);
		assert_true(rig_wait(port, false));
		fake_leave(&f);
	}
	still_well(true);
	rig_close(port);
}

/* A thread that announces a write to the peer's eventfd: it runs, then it sleeps. */
struct writer {
	struct memif_worker *w;
	int go;
	bool sleeps;
};

static void *
never_written(void *arg)
{
	struct writer *t = arg;
	uint64_t value;

	__atomic_store_n(&t->w->kicker, rte_gettid(), __ATOMIC_RELAXED);
	__atomic_store_n(&t->w->kicks, t->w->kicks + 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&t->sleeps, __ATOMIC_ACQUIRE))
		;
	assert_int_equal(read(t->go, &value, sizeof(value)), sizeof(value));
	__atomic_store_n(&t->w->kicks, t->w->kicks + 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A writer without CPU is waited for; one that sleeps in the write ends the connection. */
static void
preempted_writer(void **state)
{
	struct writer t = {.go = eventfd(0, EFD_CLOEXEC)};
	uint64_t one = 1;
	pthread_t thread;
	struct fake f;

	(void)state;
	port = rig_open("server", "");
	fake_connect(&f, 0);
	assert_true(rig_wait(port, true));
	t.w = &memif_of(port)->worker[MEMIF_TX][0];
	assert_int_equal(pthread_create(&thread, NULL, never_written, &t), 0);
	usleep(12 * TICK_MS * 1000);
	assert_true(port->ops->link_up(port));
	__atomic_store_n(&t.sleeps, true, __ATOMIC_RELEASE);
	assert_true(rig_wait(port, false));
	assert_int_equal(write(t.go, &one, sizeof(one)), sizeof(one));
	pthread_join(thread, NULL);
	fake_leave(&f);
	still_well(true);
	rig_close(port);
	close(t.go);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_a_server),    cmocka_unit_test(leaves_a_client),
		cmocka_unit_test(silent_ones),	      cmocka_unit_test(lies_to_begin_with),
		cmocka_unit_test(lies_about_memory),  cmocka_unit_test(lies_about_rings),
		cmocka_unit_test(lies_at_the_end),    cmocka_unit_test(slow_to_close),
		cmocka_unit_test(scribbling_client),  cmocka_unit_test(scribbling_server),
		cmocka_unit_test(broken_indexes),     cmocka_unit_test(memory_shrinks),
		cmocka_unit_test(blocking_interrupt), cmocka_unit_test(preempted_writer),
	};

	if (argc > 1) /* the named test only */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
