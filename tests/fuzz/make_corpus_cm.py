#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the fuzz target of connection management, as make_corpus.py does for the others."""
import struct
import sys

from make_corpus import put

CREATE, BIND, RESOLVE, CONNECT, ANSWER, OTHER, EVENT, TIME, ARRIVE, PEER, RAW, DESTROY, ACCIDENT = range(13)
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR = range(11)
OWN4, PEER4 = 2, 4  # where resolve() goes
ACCEPT, REJECT, DISCONNECT, ESTABLISH = 0, 2, 3, 4


def cm():
    def step(what, *args):
        return bytes((what,) + args)

    def time(ms):
        return bytes((TIME,)) + struct.pack('<H', ms)

    def arrive(n, at=0, change=0):
        return step(ARRIVE, n, at, change)

    def peer(kind, who, seed, *changes):
        return step(PEER, kind, who, seed, len(changes) // 2, *changes)

    # client 1 listens at port 0 of the peer's REQ or 7, client 2 connects to it through this HCA
    listener = step(CREATE, 0, 0) + step(BIND, 0, 16, 7)
    client = step(CREATE, 1, 0) + step(RESOLVE, 1, OWN4, 7, 0) + step(EVENT, 1) * 2 + step(CONNECT, 1, 9)
    connected = listener + client + arrive(0) + step(EVENT, 0) + step(ANSWER, 2, ACCEPT, 9) + arrive(1) + \
        step(EVENT, 1) + step(ANSWER, 1, ESTABLISH, 0) + arrive(2) + step(EVENT, 0)
    udp = step(CREATE, 0, 1) + step(BIND, 0, 16, 7) + step(CREATE, 1, 1) + step(RESOLVE, 1, OWN4, 7, 0) + \
        step(EVENT, 1) * 2 + step(CONNECT, 1, 9) + arrive(0) + step(EVENT, 0)
    out = step(CREATE, 0, 0) + step(RESOLVE, 0, PEER4, 7, 0) + step(CONNECT, 0, 3)
    seeds = {
        'connect': connected + step(ANSWER, 1, DISCONNECT, 0) + arrive(3) + arrive(4) + time(9000),
        'both-end': connected + step(ANSWER, 1, DISCONNECT, 0) + step(ANSWER, 2, DISCONNECT, 0) + time(60000) * 4,
        'replayed': connected + b''.join(arrive(n) for n in range(8)) * 2 + step(DESTROY, 1) + step(DESTROY, 2),
        'refused': listener + client + arrive(0) + step(EVENT, 0) + step(ANSWER, 2, REJECT, 20) + arrive(0) + arrive(1),
        'vanishes': connected + step(ACCIDENT, 1) + time(200) + step(ACCIDENT, 3) + time(60000),
        'damaged': listener + client + b''.join(arrive(0, at, 0xff) for at in range(0, 120, 3)),
        'datagrams': udp + step(ANSWER, 2, ACCEPT, 5) + arrive(0) + arrive(1) + step(EVENT, 1) + time(30000),
        'datagrams-refused': udp + step(ANSWER, 2, REJECT, 5) + arrive(1) + step(DESTROY, 2) + arrive(0),
        'peer': out + peer(MRA, 0, 5) + peer(REP, 0, 5, 39, 5) + step(EVENT, 0) + peer(REP, 0, 5) +
        step(ANSWER, 0, ESTABLISH, 0) + peer(REP, 0, 5) + peer(LAP, 0, 5) + peer(DREQ, 0, 5) + peer(DREQ, 0, 5) + time(60000),
        'peer-rejects': out + peer(REJ, 0, 5, 35, 28) + out + peer(REJ, 1, 6, 35, 4, 33, 16),
        'flood': step(CREATE, 0, 0) + step(BIND, 0, 16, 0) + b''.join(peer(REQ, 0, n) for n in range(60)) + step(EVENT, 0) * 5,
        'groups': step(CREATE, 0, 1) + step(BIND, 0, 2, 0) + step(OTHER, 0, 3, 0) + step(OTHER, 0, 3, 2) + step(OTHER, 0, 4, 0) + step(EVENT, 0),
        'options': connected + b''.join(step(OTHER, n, how, arg) for n in range(3) for how in range(7) for arg in (0, 1, 2, 7)),
        'gone': connected + step(ACCIDENT, 70) + step(ACCIDENT, 71) + step(EVENT, 0) + step(ACCIDENT, 255) + step(EVENT, 1) * 3,
        'channels': listener + client + arrive(0) + step(ACCIDENT, 36) + time(200) + step(ACCIDENT, 37) + connected + step(ACCIDENT, 36),
        'raw': listener + step(RAW, 255) + bytes((1, 7, 2, 3)) + bytes(12) + b'\0\x10' + bytes(238) + step(RAW, 3) + bytes(4),
    }
    for name, data in seeds.items():
        put('fuzz_ibcm', name, data)


if __name__ == '__main__':
    cm()
    sys.exit(0)
