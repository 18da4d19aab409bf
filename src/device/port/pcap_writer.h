/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PCAP_WRITER_H
#define PORT_PCAP_WRITER_H

/*
 * Writes bytes to a file for lcores that must not wait for a disk: they go to a bounded ring, and
 * the writer's thread writes them. Data that does not fit is refused completely.
 *
 * Owned by a capture file (port_pcap.c). start, stop: one thread; put: any thread, one at a time;
 * failed: any thread.
 */

#include <stdbool.h>
#include <stddef.h>

struct pcap_writer;

struct pcap_piece {
	const void *bytes;
	size_t len;
};

/*
 * Start a writer. bytes: size of the ring, a power of two. The caller keeps fd. 0, -ENOMEM, -EAGAIN
 * (threads).
 */
int pcap_writer_start(int fd, size_t bytes, struct pcap_writer **out);

/* Add all pieces or none. False: no room, or the file cannot be written any more. */
bool pcap_writer_put(struct pcap_writer *w, const struct pcap_piece *piece, unsigned int n);

/* Whether writing has failed; later data is lost. */
bool pcap_writer_failed(const struct pcap_writer *w);

/* Write the rest and free the writer. 0, or the error of the file, negative. */
int pcap_writer_stop(struct pcap_writer *w);

#endif
