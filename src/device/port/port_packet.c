/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <linux/if_packet.h>

#include "port/port_packet.h"

/* The driver's sockets have a ring of this version, sockets without a ring version 1. */
static bool
is_of_driver(int fd, unsigned int ifindex)
{
	struct sockaddr_ll a = {0};
	int domain = 0, version = 0;
	socklen_t len = sizeof(domain), version_len = sizeof(version), address_len = sizeof(a);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_PACKET &&
	       getsockname(fd, (struct sockaddr *)&a, &address_len) == 0 &&
	       (unsigned int)a.sll_ifindex == ifindex &&
	       getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &version_len) == 0 &&
	       version == TPACKET_V2;
}

void
hca_packet_find(struct hca_packet *p, unsigned int ifindex)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *e;

	p->count = 0;
	while (fds != NULL && (e = readdir(fds)) != NULL && p->count < HCA_PACKET_SOCKETS) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && is_of_driver(fd, ifindex))
			p->fd[p->count++] = fd;
	}
	if (fds != NULL)
		closedir(fds);
	hca_packet_lost(p);
	p->lost = 0;
}

uint64_t
hca_packet_lost(struct hca_packet *p)
{
	for (unsigned int i = 0; i < p->count; i++) {
		struct tpacket_stats st = {0};
		socklen_t len = sizeof(st);

		if (getsockopt(p->fd[i], SOL_PACKET, PACKET_STATISTICS, &st, &len) == 0)
			__atomic_fetch_add(&p->lost, st.tp_drops, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&p->lost, __ATOMIC_RELAXED);
}
