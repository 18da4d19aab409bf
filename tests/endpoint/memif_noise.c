/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer on a memif that sends frames of random bytes as fast as it can: random frames, random
 * frames to the daemon's MAC address, and RoCE packets with random transport headers.
 *
 *  memif_noise FOLDER SECONDS SEED    the socket is FOLDER/wire; prints the number of frames sent
 */

#include <time.h>

#include "../unit/device/port/memif_fake.h"

#define KINDS 1024u
#define FRAME_MAX 2048u
#define ETH 14u
#define ROCE_PORT 4791u

struct noise {
	uint16_t length;
	uint8_t bytes[FRAME_MAX];
};

static struct noise noise[KINDS];

static void
put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/*
 * Ethernet to UDP headers from the peer to the daemon's RoCE port; the transport header stays
 * random.
 */
static void
make_roce(struct noise *n)
{
	static const uint8_t ip[20] = {0x45, [8] = 64, 17, [12] = 10, 66, 0, 2, 10, 66, 0, 1};
	uint8_t *p = n->bytes + ETH;

	memcpy(p, ip, sizeof(ip));
	put16(p + 2, n->length - ETH);
	put16(p + 20, 0xc000);
	put16(p + 22, ROCE_PORT);
	put16(p + 24, n->length - ETH - 20);
	put16(p + 26, 0);
}

static void
make(unsigned int seed)
{
	static const uint8_t header[ETH] = {2, 0, 0, 0x66, 0, 1, 2, 0, 0, 0x66, 0, 2, 8, 0};

	for (uint32_t i = 0; i < KINDS; i++) {
		struct noise *n = &noise[i];

		n->length = (uint16_t)(ETH + (uint32_t)rand_r(&seed) % (FRAME_MAX - ETH));
		for (uint32_t k = 0; k < n->length; k++)
			n->bytes[k] = (uint8_t)(rand_r(&seed) >> 8);
		if (i % 4 != 0)
			memcpy(n->bytes, header, sizeof(header));
		if (i % 4 > 1 && n->length > 64)
			make_roce(n);
	}
}

/* Receive all frames of the daemon and offer the buffers again. */
static void
drain(struct fake *f)
{
	uint16_t tail = __atomic_load_n(&f->to_client->tail, __ATOMIC_ACQUIRE);

	__atomic_store_n(&f->to_client->head, (uint16_t)(tail + FAKE_SLOTS), __ATOMIC_RELEASE);
}

/* Fill all free descriptors; returns their number. */
static uint32_t
flood(struct fake *f, uint32_t *next)
{
	uint16_t head = f->to_server->head,
		 tail = __atomic_load_n(&f->to_server->tail, __ATOMIC_ACQUIRE);
	uint32_t room = FAKE_SLOTS - (uint16_t)(head - tail);
	const uint64_t one = 1;

	for (uint32_t i = 0; i < room; i++, head++) {
		const struct noise *n = &noise[(*next)++ % KINDS];
		struct memif_desc *d = &f->to_server->desc[head & (FAKE_SLOTS - 1)];

		memcpy(f->base + d->offset, n->bytes, n->length);
		d->flags = 0;
		d->length = n->length;
	}
	__atomic_store_n(&f->to_server->head, head, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (room != 0 && (__atomic_load_n(&f->to_server->flags, __ATOMIC_RELAXED) & 1) == 0 &&
	    write(f->event[0], &one, sizeof(one)) < 0)
		perror("memif_noise: its eventfd");
	return room;
}

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int
main(int argc, char **argv)
{
	uint64_t sent = 0;
	uint32_t next = 0;
	struct fake f;
	double end;

	if (argc != 4) {
		fprintf(stderr, "usage: memif_noise FOLDER SECONDS SEED\n");
		return 2;
	}
	snprintf(folder, sizeof(folder), "%s", argv[1]);
	make((unsigned int)atoi(argv[3]));
	fake_connect(&f, 0);
	printf("begins\n");
	fflush(stdout);
	for (end = seconds() + atof(argv[2]); seconds() < end;) {
		uint32_t n = flood(&f, &next);

		drain(&f);
		sent += n;
		if (n == 0)
			usleep(20);
	}
	printf("%llu\n", (unsigned long long)sent);
	fake_leave(&f);
	return 0;
}
