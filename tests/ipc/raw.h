/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_RAW_H
#define TESTS_IPC_RAW_H

/*
 * A client that builds its messages itself and may send anything. Functions assert only what
 * concerns this process; the caller checks the daemon's answers.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "ipc_proto.h"

struct raw {
	int sock;
	uint64_t seq;
	int uar_fd, sleep_fd, kick_fd;
	struct ipc_reply head; /* of the last reply */
	union {
		uint8_t body[IPC_BODY_MAX];
		uint32_t number;
		struct hca_ctl_keys keys;
		struct hca_ctl_info info;
		struct hca_ctl_welcome welcome;
	};
	int fds[HCA_CTL_FDS_MAX];
};

/* Connect without sending anything. */
void raw_connect(struct raw *r, const char *path);
/* Exchange greetings; returns the error of the reply, or -EPIPE. A client of minor version 0. */
int raw_greet(struct raw *r);
/* The same of another version. */
int raw_greet_as(struct raw *r, uint16_t version, struct hca_ctl_offer offer);
/* Connect and exchange greetings: of minor version 0, whose framing is strict; of today. */
void raw_open(struct raw *r, const char *path);
void raw_open_today(struct raw *r, const char *path);
void raw_close(struct raw *r);

/* Send any bytes with any descriptors; 0 or -errno. */
int raw_packet(struct raw *r, const void *bytes, size_t len, const int *fds, unsigned int num_fds);
/* Send a request with a correct header. */
int raw_request(struct raw *r, uint16_t op, const void *body, size_t len, int fd);
/* Wait for a reply. 1: it came; 0: the connection has ended; -1: nothing within ms. */
int raw_reply(struct raw *r, int ms);
/* Request and reply; returns the error in the reply, or -EPIPE if the connection has ended. */
int raw_call(struct raw *r, uint16_t op, const void *body, size_t len, int fd);

/* The same with any number of descriptors */
int raw_call_fds(struct raw *r, uint16_t op, const void *body, size_t len, const int *fds,
		 unsigned int num_fds);

/* MEMORY with these files */
int raw_memory(struct raw *r, int mem, int maps);
/* ATTACH of a sealed file; and with these flags. */
int raw_attach_as(struct raw *r, int fd, uint64_t va, uint64_t length, uint64_t offset,
		  uint32_t flags);
int raw_attach(struct raw *r, int fd, uint64_t va, uint64_t length, uint64_t offset);

#endif
