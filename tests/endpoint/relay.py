#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A network between two interfaces, which treats RoCE frames badly: each that comes from the second one.

relay.py INTERFACE INTERFACE KIND AMOUNT

KIND: lose, double, reorder (behind the next one, or 5 ms late), damage: a share of them; delay: seconds; mtu: bytes
of an IP packet, longer ones are lost in both directions. Prints a line when it is ready. The seed is 7.
"""
import random
import select
import socket
import sys
import time

OUTGOING = 4
KINDS = 'lose', 'double', 'reorder', 'damage', 'delay', 'mtu'
ETHERNET = 14
HELD_S = 0.005


def opened(interface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    s.bind((interface, 0))
    s.setblocking(False)
    return s


def is_roce(frame):
    return frame[12:14] == b'\x08\x00' and frame[23] == 17 and frame[36:38] == b'\x12\xb7'


class Relay:
    def __init__(self, kind, amount):
        self.kind = kind
        self.amount = amount
        self.random = random.Random(7)
        self.held = None  # (time when it leaves at the latest, frame)
        self.late = []  # (time, frame)

    def fate(self, frame):
        """Frames that leave now instead of this one, in order."""
        hit = self.random.random() < self.amount
        if self.kind == 'delay':
            self.late.append((time.monotonic() + self.amount, frame))
            return []
        if self.kind == 'reorder':
            before, self.held = self.held, None
            if hit and before is None:
                self.held = time.monotonic() + HELD_S, frame
                return []
            return [frame, before[1]] if before else [frame]
        if not hit or self.kind == 'mtu':
            return [frame]
        if self.kind == 'damage':
            return [frame[:-10] + bytes([frame[-10] ^ 0x55]) + frame[-9:]]
        return {'lose': [], 'double': [frame, frame]}[self.kind]

    def due(self):
        now = time.monotonic()
        while self.late and self.late[0][0] <= now:
            yield self.late.pop(0)[1]
        if self.held and self.held[0] <= now:
            yield self.held[1]
            self.held = None

    def wait(self):
        first = self.late[0] if self.late else self.held
        return max(0, first[0] - time.monotonic()) if first else None


def put(s, frame):
    try:
        s.send(frame)
    except OSError:
        pass  # no room: lost


def run(relay, first, second):
    while True:
        ready = select.select([first, second], [], [], relay.wait())[0]
        for frame in relay.due():
            put(first, frame)
        for s in ready:
            try:
                frame, address = s.recvfrom(65536)
            except BlockingIOError:
                continue
            if address[2] == OUTGOING or (relay.kind == 'mtu' and len(frame) - ETHERNET > relay.amount):
                continue
            if s is first or not is_roce(frame):
                put(second if s is first else first, frame)
            else:
                for each in relay.fate(frame):
                    put(first, each)


def main():
    first, second, kind, amount = sys.argv[1:5]
    if kind not in KINDS:
        sys.exit('%s is none of %s' % (kind, ', '.join(KINDS)))
    sockets = opened(first), opened(second)
    print('ready', flush=True)
    run(Relay(kind, float(amount)), *sockets)


if __name__ == '__main__':
    main()
