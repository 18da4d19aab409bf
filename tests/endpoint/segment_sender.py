#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A host on the segment of interface `wire` that sends frames to 10.66.0.1 until it is terminated, or for a time:
random ones, or claims of the address of 10.66.0.2.

segment_sender.py SECONDS noise|poison

Prints "begins", and at the end the number of frames sent.
"""
import random
import signal
import socket
import struct
import sys
import time

MAC, PEER, LIAR = bytes.fromhex('020000660001'), bytes.fromhex('020000660002'), bytes.fromhex('020000669999')
OWN4, PEER4 = socket.inet_aton('10.66.0.1'), socket.inet_aton('10.66.0.2')
OWN6, PEER6 = [socket.inet_pton(socket.AF_INET6, '2001:db8:66::%d' % n) for n in (1, 2)]


def arp(dst, op, tpa):
    return dst + LIAR + b'\x08\x06\0\x01\x08\0\x06\x04\0' + bytes([op]) + LIAR + PEER4 + MAC + tpa


def advert(flags):
    body = struct.pack('>BBHI', 136, 0, 0, flags << 24) + PEER6 + b'\x02\x01' + LIAR
    total = sum(struct.unpack('>%dH' % 26, PEER6 + OWN6 + struct.pack('>II', len(body), 58) + body[:12]))
    total += sum(struct.unpack('>10H', body[12:]))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    body = body[:2] + struct.pack('>H', ~total & 0xffff) + body[4:]
    return MAC + LIAR + b'\x86\xdd' + struct.pack('>IHBB', 6 << 28, len(body), 58, 255) + PEER6 + OWN6 + body


def noise():
    r = random.Random(1)
    for i in range(500):
        f = bytearray(r.randbytes(r.randrange(14, 1500)))
        if i % 4:
            f[0:14] = MAC + (PEER if i & 1 else LIAR) + b'\x08\0'
        if i % 4 > 1 and len(f) > 64:  # RoCE by its header, and from the peer: the rest is anything
            f[14:42] = (b'\x45\0' + struct.pack('>H', len(f) - 14) + b'\0\0\x40\0\x40\x11\0\0' + PEER4 + OWN4 +
                        b'\xc0\0' + struct.pack('>HHH', 4791, len(f) - 34, 0))
        yield bytes(f)


def main():
    seconds, kind = float(sys.argv[1]), sys.argv[2]
    frames, pause = (list(noise()), 0) if kind == 'noise' else (
        [arp(b'\xff' * 6, 1, PEER4), arp(MAC, 2, OWN4), advert(0x20), advert(0x60)], 0.01)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(('wire', 0))
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print('begins', flush=True)
    end, sent = time.monotonic() + seconds, 0
    while time.monotonic() < end and not ended:
        for f in frames:
            try:
                s.send(f)
                sent += 1
            except OSError:
                time.sleep(0.001)
        time.sleep(pause)
    print(sent)


if __name__ == '__main__':
    main()
