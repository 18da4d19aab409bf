#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Good captures pass the checker of UB's rules, and each broken one is found for its own reason."""
import struct
import sys
import zlib

import ub_check

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def frame(src, dst, sport, tph, v6=False):
    udp = struct.pack('>HHHH', sport, 4792, 12 + len(tph), 0)
    if v6:
        ip = struct.pack('>IHBB', 6 << 28, len(udp) + len(tph) + 4, 17, 64) + \
            src.rjust(16, b'\x20') + dst.rjust(16, b'\x20')
    else:
        ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(udp) + len(tph) + 4, 0, 0x4000, 64, 17, 0) + \
            src + dst
    masked = bytearray(ip + udp + tph)
    for i in (1, 2, 3, 7) if v6 else (1, 8, 10, 11):
        masked[i] = 255
    if v6:
        masked[0] |= 15
    masked[len(ip) + 6:len(ip) + 8] = b'\xff\xff'
    icrc = struct.pack('<I', zlib.crc32(bytes(masked)))
    return b'\x02' * 12 + (b'\x86\xdd' if v6 else b'\x08\x00') + ip + udp + tph + icrc


def rtph(op, here, there, psn, tpmsn, last=0, pad=0, status=0, flags=0):
    return struct.pack('>BBHBBHB', last << 7 | op, pad << 4, here >> 8, here & 255, there >> 16,
                       there & 0xffff, flags) + psn.to_bytes(3, 'big') + bytes([status]) + \
        tpmsn.to_bytes(3, 'big')


def write(psn, tpmsn, size, last, at=0x1000, length=None, tassn=5, rc=16, fill=0, **more):
    pad = more.pop('pad', -size % 4)
    tah = struct.pack('>BBHI', 3, 0x10, tassn, rc) + \
        struct.pack('>QII', at, 0x77 << 8, size if length is None else length)
    return rtph(1, 0x11, 0x22, psn, tpmsn, last, pad, **more) + tah + b'\x5a' * size + \
        bytes([fill]) * pad


def notify(psn, tpmsn, value, tv_en, tassn=5):
    tah = struct.pack('>BBHI', 5, 0x10 | tv_en << 3, tassn, 16) + \
        struct.pack('>QII', 0x1000, 0x77 << 8, 4) + \
        struct.pack('>QIIQ', 0x2000, 0x77 << 8, value, 1) + bytes(4 * tv_en)
    return rtph(1, 0x11, 0x22, psn, tpmsn, 1) + tah + bytes(4)


def taack(psn, tpmsn, tassn=5):
    return rtph(1, 0x22, 0x11, psn, tpmsn, 1) + struct.pack('>BBHI', 0x11, 0, tassn, 16)


def ack(psn, status=0, here=0x22, there=0x11):
    return rtph(2, here, there, psn, 0, status=status)


def sack(psn, max_rcv, bits):
    return rtph(5, 0x22, 0x11, psn, 0) + bytes([0]) + max_rcv.to_bytes(3, 'big') + \
        bits.to_bytes(8, 'little')


def ab(tph, sport=50000, v6=False):
    return frame(A, B, sport, tph, v6)


def ba(tph, sport=50000, v6=False):
    return frame(B, A, sport, tph, v6)


def good(v6=False, first=0xfffffe):
    """A segment of three packets, one of an empty Write, answers, the second packet sent twice."""
    p = [(first + i) % (1 << 24) for i in range(6)]
    body = [write(p[0], 1, 1024, 0, 0x1000, 2148), write(p[1], 1, 1024, 0, 0x1400, 2148),
            write(p[2], 1, 100, 1, 0x1800, 2148)]
    return [ab(body[0], v6=v6), ab(body[1], v6=v6), ab(body[2], v6=v6),
            ba(sack(p[0], p[2], 0b101), v6=v6), ab(body[1], v6=v6), ba(ack(p[2]), v6=v6),
            ba(taack(77, 1), v6=v6), frame(A, B, 50000, rtph(2, 0x11, 0x22, 77, 0), v6),
            ab(write(p[3], 2, 0, 1, tassn=6), v6=v6), ba(ack(p[3]), v6=v6),
            ab(rtph(0, 0, 0, 0, 0, 1) + struct.pack('>BBHIII', 0, 0x10, 9, 0x08000010, 1, 0), v6=v6),
            ba(ack(p[4], status=0x60), v6=v6), ab(write(p[4], 3, 7, 1, tassn=7), v6=v6)]


def bare():
    """A Read of 5 bytes, a fetch and add, and their responses, without TAIDETAH and OFSTETAH."""
    read = struct.pack('>BBHIQII', 6, 0x10, 1, 16, 0x1000, 0x77 << 8, 5)
    add = struct.pack('>BBHIQII', 11, 0x10, 2, 16, 0x1000, 0x77 << 8, 4) + bytes(8)
    return [ab(rtph(1, 0x11, 0x22, 5, 1, 1) + read), ab(rtph(1, 0x11, 0x22, 6, 2, 1) + add),
            ba(rtph(1, 0x22, 0x11, 9, 1, 1, 3) + struct.pack('>BBHI', 0x12, 0, 1, 16) + bytes(8)),
            ba(rtph(1, 0x22, 0x11, 10, 2, 1) + struct.pack('>BBHI', 0x13, 0, 2, 16) + bytes(4))]


def pcap(frames):
    data = struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
    for f in frames:
        data += struct.pack('<IIII', 0, 0, len(f), len(f)) + f
    return data


def pcapng(frames):
    data = struct.pack('<IIIHHqI', 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, -1, 28)
    data += struct.pack('<IIHHII', 1, 20, 1, 0, 65535, 20)
    for f in frames:
        body = f + bytes(-len(f) % 4)
        data += struct.pack('<IIIIIII', 6, 32 + len(body), 0, 0, 0, len(f), len(f)) + body
        data += struct.pack('<I', 32 + len(body))
    return data


def at(frames, i, new):
    return frames[:i] + ([new] if new is not None else []) + frames[i + 1:]


def flip(f, byte):
    return f[:byte] + bytes([f[byte] ^ 1]) + f[byte + 1:]


F = 0xfffffe
G = good()
# Name of the rule that must be told, and the capture that breaks it.
BROKEN = [
    ('value of a notify', [ab(notify(5, 1, 7, 1)), ab(notify(6, 2, 0, 0)), ab(notify(7, 3, 7, 0))]),
    ('ICRC', at(G, 1, flip(G[1], 80))),
    ('ICRC', at(G, 1, flip(G[1], 35))),
    ('DF or fragment', at(G, 0, flip(G[0], 14 + 7))),
    ('total length', at(G, 0, G[0] + b'\0\0\0\0')),
    ('UDP checksum', at(G, 0, flip(G[0], 14 + 27))),
    ('transport version', at(G, 0, ab(rtph(1, 0x11, 0x22, F, 1)[:1] + b'\x40' +
                                      write(F, 1, 1024, 0)[2:]))),
    ('transport opcode', at(G, 0, ab(rtph(4, 0x11, 0x22, F, 1)))),
    ('reserved bits of the RTPH', at(G, 0, ab(write(F, 1, 1024, 0, length=2148, flags=1)))),
    ('UTPH', at(G, 10, ab(rtph(0, 1, 0, 0, 0, 1) + struct.pack('>BBHIII', 0, 0x10, 9, 0x08000010,
                                                               1, 0)))),
    ('transaction opcode', at(G, 8, ab(rtph(1, 0x11, 0x22, 1, 2, 1) + b'\x02' + bytes(7)))),
    ('not whole words', at(G, 12, ab(write(2, 3, 7, 1, tassn=7, pad=0)))),
    ('pad is not 0', at(G, 12, ab(write(2, 3, 7, 1, tassn=7, fill=1)))),
    ('behind', at(G, 8, ab(write(5, 2, 0, 1, tassn=6)))),
    ('below the first', at(G, 4, ab(write(F - 9, 1, 1024, 0, length=2148)))),
    ('another packet', at(G, 4, ab(write(F + 1, 1, 1000, 1, 0x1400, 2148)))),
    ('TPMSN', at(G, 8, ab(write(1, 4, 0, 1, tassn=6)))),
    ('inside operation', at(G, 1, ab(write(F + 1, 2, 1024, 0, 0x1400, 2148)))),
    ('first TPMSN', at(G, 0, ab(write(F, 9, 1024, 0, 0x1000, 2148)))),
    ('is not the last', at(G, 0, ab(write(F, 1, 1000, 0, 0x1000, 2148)))),
    ('MTU is 1024, then 4096', [ab(write(F, 1, 1024, 0, 0x1000, 8192)),
                                ab(write(F + 1, 1, 4096, 0, 0x1400, 8192))]),
    ('several is empty', at(G, 2, ab(write(0, 1, 0, 1, 0x1800, 2148)))),
    ('address of packet', at(G, 1, ab(write(F + 1, 1, 1024, 0, 0x1404, 2148)))),
    ('segment length', at(G, 1, ab(write(F + 1, 1, 1024, 0, 0x1400, 2149)))),
    ('TASSN', at(G, 1, ab(write(F + 1, 1, 1024, 0, 0x1400, 2148, tassn=4)))),
    ('RC id', at(G, 1, ab(write(F + 1, 1, 1024, 0, 0x1400, 2148, rc=17)))),
    ('exceeds the length of its segment', at(G, 0, ab(write(F, 1, 1024, 0, length=1000)))),
    ('from port', at(G, 5, ba(ack(0), sport=50001))),
    ('addresses or TPNs', at(G, 5, ba(ack(0, here=0x11, there=0x22)))),
    ('addresses or TPNs', at(G, 5, ab(ack(0)))),
    ('is acknowledged', at(G, 5, ba(ack(1)))),
    ('never sent', at(G, 3, ba(sack(F, 9, 0b101)))),
    ('bit 0', at(G, 3, ba(sack(F, 0, 0b100)))),
    ('behind MaxRcvPSN', at(G, 3, ba(sack(F, 0, 0b1101)))),
    ('length of an acknowledgement', at(G, 5, ba(ack(0) + bytes(4)))),
    ('in flight', [ab(write(i, i + 1, 4, 1)) for i in range(2049)]),
    ('too short for its headers', bare()),
    ('inside a record', None),
]


def main():
    bad = []
    captures = [('IPv4', pcap(G)), ('IPv6', pcap(good(True))), ('pcapng', pcapng(G)),
                ('no wrap', pcap(good(first=100))),
                ('window', pcap([ab(write(i, i + 1, 4, 1)) for i in range(2048)]))]
    for name, data in captures:
        complaints, frames = ub_check.check(data)
        if complaints or not frames:
            bad.append('%s, %d frames: %s' % (name, frames, complaints))
    complaints, frames = ub_check.check(pcap(bare()), bare=True)
    if complaints or frames != 4:
        bad.append('bare: %s' % complaints)
    for rule, frames in BROKEN:
        data = pcap(frames) if frames is not None else pcap(G)[:-1]
        complaints, _ = ub_check.check(data)
        if not any(rule in c for c in complaints):
            bad.append('"%s" is not found, but: %s' % (rule, complaints))
    for line in bad:
        print(line)
    print('%d good captures, %d broken ones, %d wrong' % (len(captures) + 1, len(BROKEN), len(bad)))
    return 1 if bad else 0


sys.exit(main())
