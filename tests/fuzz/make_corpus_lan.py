#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the fuzz targets of other protocols on a port, and of pings, as make_corpus.py does for others."""
import ipaddress
import struct
import sys

from make_corpus import put

OURS, PEER, ALL = bytes((2, 0, 0, 0, 0, 1)), bytes((2, 0, 0, 0, 0, 9)), b'\xff' * 6
TO_US, FIX = 4, 8


def frame(data, flags=FIX):
    return bytes((flags,)) + struct.pack('<H', len(data)) + data


def time(root):
    return bytes((1, root))


def ether(kind, dst=ALL, vlan=None):
    return dst + PEER + (b'' if vlan is None else struct.pack('>HH', 0x8100, vlan)) + struct.pack('>H', kind)


def arp(op, sender, target, **where):
    return ether(0x0806, **where) + struct.pack('>HHBBH', 1, 0x800, 6, 4, op) + PEER + bytes(sender) + bytes(6) + bytes(target)


def ip4(proto, dst, payload, options=b'\x94\4\0\0', src=(10, 0, 0, 9), **where):
    return (ether(0x0800, **where) + struct.pack('>BBHHHBBH', 0x45 + len(options) // 4, 0xc0, 20 + len(options) + len(payload),
                                                 0, 0, 1, proto, 0) + bytes(src) + bytes(dst) + options + payload)


def ip6(dst, payload, src='2001:db8::9', alert=False, hops=255, **where):
    extra = b'\x3a\0\5\2\0\0\1\0' if alert else b''
    return (ether(0x86dd, **where) + struct.pack('>IHBB', 6 << 28, len(extra + payload), 0 if alert else 58, hops) +
            ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed + extra + payload)


def igmp(code, group=(0, 0, 0, 0), tail=b''):
    return struct.pack('>BBH', 0x11, code, 0) + bytes(group) + tail


def mld(code, group='::', tail=b'', kind=130):
    return struct.pack('>BBHHH', kind, 0, 0, code, 0) + ipaddress.ip_address(group).packed + tail


def nd(kind, target, option, flags=0):
    return struct.pack('>BBHI', kind, 0, 0, flags << 24) + ipaddress.ip_address(target).packed + bytes((option, 1)) + PEER


def join(which, flags=0):
    return bytes((2 | flags, which))


def responder():
    echo = struct.pack('>BBHHH', 8, 0, 0, 1, 1) + bytes(range(64))
    seeds = {
        'arp': frame(arp(1, (10, 0, 0, 9), (10, 0, 0, 1))) + bytes((3, 9)) + frame(arp(2, (10, 0, 0, 9), (10, 0, 0, 1)), FIX | TO_US) +
        time(10) + frame(arp(1, (10, 0, 0, 9), (10, 0, 0, 9))) + time(60),
        'arp-vlan': frame(arp(1, (10, 0, 7, 9), (10, 0, 7, 1), vlan=7)) + frame(arp(1, (10, 0, 7, 9), (10, 0, 7, 1), vlan=8)),
        'echo': frame(ip4(1, (10, 0, 0, 1), echo, b''), FIX | TO_US) +
        frame(ip6('2001:db8::1', struct.pack('>BBHHH', 128, 0, 0, 1, 1) + bytes(32)), FIX | TO_US),
        'nd': frame(ip6('ff02::1:ff00:1', nd(135, '2001:db8::1', 1))) + bytes((7, 9)) +
        frame(ip6('2001:db8::1', nd(136, '2001:db8::9', 2, 0x60)), FIX | TO_US) + time(50),
        'igmp': join(2) + join(4) + time(40) + frame(ip4(2, (224, 0, 0, 1), igmp(10, tail=b'\2\x7d\0\0'))) + time(40) +
        frame(ip4(2, (239, 1, 0, 2), igmp(10, (239, 1, 0, 2), b'\2\x7d\0\1\x0a\0\0\1'))) + time(40) + join(2, 4) + time(50),
        'igmp-old': join(2) + frame(ip4(2, (224, 0, 0, 1), igmp(10))) + time(40) + join(2, 4) + time(50) +
        frame(ip4(2, (224, 0, 0, 1), igmp(0))) + join(2) + time(120) + time(255) * 5,
        'mld': join(5) + join(3, 16) + time(40) + frame(ip6('ff02::1', mld(1000, tail=b'\2\x7d\0\0'), 'fe80::9', True, 1)) + time(40) +
        frame(ip6('ff05::5', mld(0x9fff, 'ff05::5', b'\2\x7d\0\0'), 'fe80::9', True, 1)) + time(255),
        'mld-old': join(5) + frame(ip6('ff02::1', mld(1000), 'fe80::9', True, 1)) + time(40) + join(5, 4) + time(50),
        'queries': join(2) + join(4) + time(40) + (frame(ip4(2, (224, 0, 0, 1), igmp(1, tail=b'\2\x7d\0\0'))) + time(4)) * 40,
        'moves': bytes((3, 9)) + frame(arp(2, (10, 0, 0, 9), (10, 0, 0, 1)), FIX | TO_US) + time(70) +
        (frame(arp(1, (10, 0, 0, 9), (10, 0, 0, 9))) + time(20)) * 10,
    }
    for name, data in seeds.items():
        put('fuzz_responder', name, data)


def ping():
    def step(what, ms, length, data=b''):
        return bytes((what, ms)) + struct.pack('<H', length) + data

    drep = bytes((1, 7, 2, 3)) + bytes(12) + b'\0\x16' + bytes(14)
    seeds = {
        'questions': b''.join(step(8 | peer, 3, length) for peer in range(4) for length in (256, 300, 4096)) * 4,
        'answers': b''.join(step(8 | 16 | 4, 20, 256) for _ in range(60)),
        'drep': step(0, 255, 0) * 8 + step(4, 20, 256, drep) * 4,
        'flood': step(8, 1, 256) * 120,
        'raw': step(0, 1, 64, bytes((1, 0x4f, 1, 1)) + bytes(60)) + step(0, 1, 24, drep),
    }
    for name, data in seeds.items():
        put('fuzz_ping', name, data)


if __name__ == '__main__':
    responder()
    ping()
    sys.exit(0)
