/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_KERNIF_LAN_H
#define TESTS_UNIT_KERNIF_LAN_H

/*
 * A shared port whose wire leads to one other host, which is a responder; a thread plays the lcores
 * of decap and encap. The host can be replaced by one with another MAC address, or be silenced.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct lan;

/* kick, kick_arg: as in hca_port_divert_config. mac: of this side. Aborts the test on failure. */
struct lan *lan_open(const uint8_t mac[6], void (*kick)(void *arg), void *kick_arg);
void lan_close(struct lan *l);
/* The shared port. */
struct hca_port *lan_port(struct lan *l);
/* Replace the other host, 10.9.0.2/24 and 2001:db8:9::2/64; it announces itself. */
void lan_host(struct lan *l, const uint8_t mac[6]);
void lan_silence(struct lan *l, bool on);
/* Number of reports of IGMPv3 or MLDv2 in which this side says that it joined, or left, a group. */
unsigned int lan_reports(struct lan *l, const uint8_t group[16], bool joined);
/* Send a frame to this side. */
void lan_send(struct lan *l, const uint8_t *frame, uint32_t len);
/* Number of echo requests that the host received. */
uint64_t lan_pinged(struct lan *l);

#endif
