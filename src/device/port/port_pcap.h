/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_PCAP_H
#define PORT_PORT_PCAP_H

/*
 * A port that writes every frame it transmits to a classic pcap file (nanosecond times, Ethernet)
 * and passes it on; on request also every frame it receives (both ends of a link in memory would
 * write it twice). Several ports may share one file.
 *
 * Classic files are for debugging and for the decoders of the tests: system calls are made on the
 * lcores of encap and decap. A pcapng file is written by a thread of its own (pcap_writer.h): a
 * slow or full disk costs frames of the capture, which are counted, and no traffic.
 *
 * hca_port.close() closes what it wraps, not the file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_pcap;

/* At most max_frames frames are written, 0: no bound. 0 or negative errno. */
int hca_pcap_open(const char *path, uint64_t max_frames, struct hca_pcap **out);
/*
 * The same as pcapng, which names the interface and tells received frames from sent ones, with what
 * of them is wanted. The file must not be there yet: -EEXIST.
 */
struct hca_pcap_ng {
	const char *interface; /* at most 60 characters of it */
	uint64_t epoch;	       /* ns to add to the time of the engine to get that of day */
	uint32_t snaplen;      /* bytes of a frame, 0: all */
	size_t ring;	       /* bytes on their way to the disk, a power of two; 0: 32 MiB */
	bool no_received, no_sent;
	/*
	 * Packets of one QP only: received for qpn, sent to remote_qpn of its peer, or from it
	 * where the packet says so (UD).
	 */
	bool one_qp;
	uint32_t qpn, remote_qpn;
};

int hca_pcap_open_ng(const char *path, const struct hca_pcap_ng *ng, struct hca_pcap **out);
/*
 * 0, or -EIO when something could not be written. Ports may outlive it only detached. A pcapng file
 * ends with how many frames there are and how many were lost on the way.
 */
int hca_pcap_close(struct hca_pcap *file);
/* Those that are in the file, or will be when it is closed. */
uint64_t hca_pcap_frames(const struct hca_pcap *file);
/* pcapng: frames that were wanted and did not fit between lcore and disk. */
uint64_t hca_pcap_lost(const struct hca_pcap *file);
/* pcapng: the disk takes no more; the capture had better be ended. */
bool hca_pcap_failed(const struct hca_pcap *file);

/* 0, -ENOMEM. file may be NULL: nothing is written until hca_port_pcap_attach(). */
int hca_port_pcap_open(struct hca_pcap *file, struct hca_port *inner, int socket_id,
		       struct hca_port **out);

/* Received frames too. Before the port is used. */
void hca_port_pcap_both_ways(struct hca_port *p);

/* Another file, or NULL. The file that was attached is in use no more when this has returned. */
void hca_port_pcap_attach(struct hca_port *p, struct hca_pcap *file);

#endif
