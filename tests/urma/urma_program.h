/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_URMA_PROGRAM_H
#define TESTS_URMA_PROGRAM_H

/*
 * Shared by the programs of this folder: a device, a JFC, a Jetty, and a segment of memory. They
 * use the installed header only. An error is printed and ends the program.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softhca/urma.h>

#define BYTES (1u << 20)
#define PART (256u << 10)
#define TOKEN 0x1234567u
#define DEPTH 16u
#define SGES 16u

struct program {
	urma_context_t *ctx;
	urma_jfce_t *jfce; /* NULL: completions are polled for */
	urma_jfc_t *jfc;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
	uint8_t *mem;
	/* of the peer */
	urma_target_jetty_t *to;
	urma_target_seg_t *to_seg;
};

/* Of two programs that work with each other */
struct roles {
	urma_transport_mode_t mode;
	void (*serve)(struct program *p, const char *place);
	void (*use)(struct program *p, const char *place);
};

/* Events of the JFC so far */
extern int events_seen;

void must(int good, const char *what);
/* On the device's last address; events: completions come with events. */
void open_program(struct program *p, char *device, urma_transport_mode_t mode, int events);
void close_program(struct program *p);
/* The main() of both: "DEVICE serve PLACE" or "DEVICE use PLACE"; at the end "verified" is said. */
int play(int argc, char **argv, const struct roles *roles);
/* "PLACE.WHAT": another file of the same two programs */
void beside(char *name, size_t bytes, const char *place, const char *what);
/* The Jetty and segment of a peer, which have the token of all programs. */
void import_peer(struct program *p, const urma_jetty_id_t *jetty, const urma_seg_t *seg,
		 urma_transport_mode_t mode);
void unimport_peer(struct program *p);
/*
 * For a peer in another process: write the names of the own Jetty and segment to a file; wait for
 * the peer's file and import its objects.
 */
void offer(const struct program *p, const char *place);
void find_peer(struct program *p, const char *place, urma_transport_mode_t mode);
/* A Jetty in addition to that of the program. */
urma_jetty_t *new_jetty(struct program *p, urma_transport_mode_t mode);
/* The next completion, which is good. */
urma_cr_t next(struct program *p);
urma_cr_t next_of_any_status(struct program *p);
void same(const void *a, const void *b, size_t n, const char *what);
/* len bytes at `at` of the own memory */
urma_sge_t own(const struct program *p, uint32_t at, uint32_t len);
void receive(struct program *p, uint32_t at, uint32_t len, uint64_t id);
void post(struct program *p, urma_jfs_wr_t *wr);
/* A Write or Read between own memory at `near` and the peer's at `far`; it is complete. */
void transfer(struct program *p, urma_opcode_t opcode, uint32_t near, uint32_t far, uint32_t len);

#endif
