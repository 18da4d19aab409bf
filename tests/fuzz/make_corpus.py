#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the fuzz targets into tests/fuzz/corpus; run by hand after a change of their
input formats (which the head of each fuzz_*.c describes). The result is committed."""
import glob
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURES = os.path.join(HERE, '..', 'wire', 'captures', '*.pcap')
FRESH, READER, WRITER, RECEIVER, WRITTEN, SENT = range(6)
ACKREQ, SE, BAD_PAD, FROM_UNA, REGION = 1, 2, 4, 8, 16
RW, RO, SOURCE, TARGET = 0, 32, 64, 96


def put(target, name, data):
    folder = os.path.join(HERE, 'corpus', target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def frames(path):
    with open(path, 'rb') as f:
        data = f.read()
    order = '<' if data[:1] in (b'\xd4', b'\x4d') else '>'
    at = 24
    while at + 16 <= len(data):
        n = struct.unpack(order + 'I', data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + n]
        at += 16 + n


def opcode(frame):
    bth = 14 + (20 if frame[12:14] == b'\x08\x00' else 40) + 8
    return frame[bth] if len(frame) > bth else 0


def roce_parse():
    seen = set()
    for path in sorted(glob.glob(CAPTURES)):
        for f in frames(path):
            key = (f[12], opcode(f))
            if key not in seen:
                seen.add(key)
                put('fuzz_roce_parse', 'op%02x-%02x' % key[::-1], f[:600])
    # no capture has these: of a WRITE, whose payload may have any length here
    write = next(f for f in frames(os.path.join(os.path.dirname(CAPTURES), 'rc_write.pcap')) if opcode(f) == 0x0a)
    reth_at = 14 + 20 + 8 + 12
    put('fuzz_roce_parse', 'op1d-08', write[:42] + b'\x1d' + write[43:reth_at + 16] + b'\1' * 8 + write[-4:])
    put('fuzz_roce_parse', 'op1c-08',
        write[:42] + b'\x1c' + write[43:reth_at] + b'\0\0\0\1' + write[reth_at:reth_at + 16] + write[-4:])
    tagged = next(frames(sorted(glob.glob(CAPTURES))[1]))
    put('fuzz_roce_parse', 'vlan', tagged[:12] + b'\x81\x00\x00\x05' + tagged[12:])


def packet(qp, op, ctl=0, delta=0, payload=0, ext=b''):
    return struct.pack('<BBBBbH', 2, qp, op, ctl, delta, payload) + ext


def reth(off, length, key=0):
    return struct.pack('>QII', off + 16, key, length)


def feth(off, length, bits=1):
    """FETH and RETH of a FLUSH; bits: 1 global, 2 persistent, 16 all of the region."""
    return struct.pack('>I', bits) + reth(off, length)


def atomic(off, swap=7, compare=0):
    return struct.pack('>QIQQ', off + 16, 0, swap, compare)


def aeth(syndrome, msn=1):
    return struct.pack('>I', syndrome << 24 | msn)


RUN = b'\x07'


def time(n):
    return bytes((5, n))


def post(kind, qp, quarter, *, one_sge=False):
    return bytes((6 | one_sge << 3, kind | qp * 8, quarter))


SCENARIOS = {
    'fresh-write-only': packet(FRESH, 0x0a, REGION | RW | ACKREQ, 0, 64, reth(0x40, 64)) + RUN,
    'fresh-write-imm': packet(RECEIVER, 0x0b, REGION | RW | ACKREQ, 0, 9, reth(1, 9) + b'abcd'),
    'fresh-write-three': packet(FRESH, 0x06, REGION | RW, 0, 256, reth(8, 600)) +
    packet(FRESH, 0x07, 0, 1, 256) + packet(FRESH, 0x08, ACKREQ, 2, 88),
    'fresh-write-ro': packet(FRESH, 0x0a, REGION | RO | ACKREQ, 0, 64, reth(0x40, 64)),
    'fresh-write-beyond': packet(FRESH, 0x0a, REGION | RW, 0, 64, reth(0x1240, 64)),
    'fresh-write-zero': packet(FRESH, 0x0a, ACKREQ, 0, 0, reth(0, 0)),
    'fresh-write-length': packet(FRESH, 0x0a, REGION | RW, 0, 60, reth(0x40, 64)),
    'fresh-read': packet(FRESH, 0x0c, REGION | RO, 0, 0, reth(5, 1000)) + RUN * 4,
    'fresh-read-twice': (packet(FRESH, 0x0c, REGION | RO, 0, 0, reth(5, 700)) + RUN * 3 +
                         packet(FRESH, 0x0c, REGION | RO, -2, 0, reth(5 + 256, 444))),
    'fresh-read-source': packet(FRESH, 0x0c, REGION | SOURCE, 0, 0, reth(5, 100)),
    'fresh-read-many': b''.join(packet(FRESH, 0x0c, REGION | RO, i * 3, 0, reth(5, 700))
                                for i in range(6)),
    'fresh-atomics': packet(FRESH, 0x13, REGION | RW, 0, 0, atomic(0)) +
    packet(FRESH, 0x14, REGION | RW, 1, 0, atomic(8)) + RUN +
    packet(FRESH, 0x14, REGION | RW, -1, 0, atomic(8)),
    'fresh-atomic-unaligned': packet(FRESH, 0x14, REGION | RW, 0, 0, atomic(3)),
    'fresh-atomic-write': packet(FRESH, 0x1d, REGION | RW | ACKREQ, 0, 8, reth(8, 8)) + RUN * 2 +
    packet(FRESH, 0x1d, REGION | RW, -1, 8, reth(8, 8)) + RUN,
    'fresh-flush': packet(FRESH, 0x0a, REGION | RW, 0, 64, reth(8, 64)) +
    packet(FRESH, 0x1c, REGION | RW, 1, 0, feth(8, 64)) + RUN * 2 +
    packet(FRESH, 0x1c, REGION | RW, -1, 0, feth(8, 64)) + RUN,
    'fresh-flush-region': packet(FRESH, 0x1c, REGION | RW, 0, 0, feth(0xffff, 0, 0x11)) + RUN * 2,
    'fresh-confirmed-many': b''.join(packet(FRESH, 0x1c if i & 1 else 0x1d, REGION | RW, i, 0 if i & 1 else 8,
                                            feth(8, 8) if i & 1 else reth(8, 8)) for i in range(7)) + RUN * 4,
    'post-confirmed': post(7, FRESH, 0xfe) + post(7, FRESH, 0xff) + RUN * 2 +
    packet(FRESH, 0x10, FROM_UNA, 0, 0, aeth(0x1f)) + packet(FRESH, 0x10, FROM_UNA, 1, 0, aeth(0x1f)) + RUN +
    post(7, FRESH, 0xff) + RUN + packet(FRESH, 0x10, FROM_UNA, 0, 8, aeth(0x1f)) + RUN + time(60),
    'fresh-send-rnr': packet(FRESH, 0x04, ACKREQ, 0, 32) + RUN + packet(FRESH, 0x04, ACKREQ, 0, 32),
    'fresh-gap': packet(FRESH, 0x0a, REGION | RW, 2, 8, reth(0, 8)) +
    packet(FRESH, 0x0a, REGION | RW, 3, 8, reth(0, 8)) + RUN,
    'fresh-unknown': packet(FRESH, 0x1f, ACKREQ) + RUN + packet(FRESH, 0x15),
    'fresh-other-service': packet(FRESH, 0x24, 0, 0, 8) + packet(FRESH, 0x64, 0, 0, 8, b'\0' * 8) +
    packet(FRESH, 0x81, 0, 0, 16) + packet(FRESH, 0xa4, 0, 0, 8, b'\0' * 4),
    'fresh-bad-pad': packet(FRESH, 0x0a, REGION | RW | BAD_PAD, 0, 61, reth(0x40, 61)),
    'receiver-sends': packet(RECEIVER, 0x04, SE, 0, 100) + packet(RECEIVER, 0x05, 0, 1, 200, b'imm!') +
    packet(RECEIVER, 0x00, 0, 2, 256) + packet(RECEIVER, 0x02, ACKREQ, 3, 100) + RUN,
    'receiver-too-long': packet(RECEIVER, 0x00, 0, 0, 256) + packet(RECEIVER, 0x02, 0, 1, 256),
    'receiver-inv': packet(RECEIVER, 0x17, 0, 0, 30, b'\0\0\1\2'),
    'written-rest': packet(WRITTEN, 0x07, 0, 0, 256) + packet(WRITTEN, 0x07, 0, 1, 256) +
    packet(WRITTEN, 0x08, ACKREQ, 2, 5) + RUN,
    'written-imm': packet(WRITTEN, 0x07, 0, 0, 256) + packet(WRITTEN, 0x07, 0, 1, 256) +
    packet(WRITTEN, 0x09, ACKREQ, 2, 5, b'imm?') + RUN,
    'written-send': packet(WRITTEN, 0x04, ACKREQ, 0, 5),
    'written-short': packet(WRITTEN, 0x08, ACKREQ, 0, 5),
    'sent-rest': packet(SENT, 0x01, 0, 0, 256) + packet(SENT, 0x03, ACKREQ, 1, 5, b'immm') + RUN,
    'sent-first-again': packet(SENT, 0x00, 0, 0, 256) + packet(SENT, 0x01, 0, -1, 256),
    'writer-acked': packet(WRITER, 0x11, FROM_UNA, 3, 0, aeth(0x1f)) + RUN +
    packet(WRITER, 0x11, FROM_UNA, 1, 0, aeth(0x1f)) + RUN +
    packet(WRITER, 0x12, FROM_UNA, 0, 0, aeth(0x1f) + b'12345678') + RUN +
    packet(WRITER, 0x11, FROM_UNA, 0, 0, aeth(0x1f)) + RUN,
    'writer-seq-nak': packet(WRITER, 0x11, FROM_UNA, 1, 0, aeth(0x60)) + RUN * 3 +
    packet(WRITER, 0x11, FROM_UNA, 6, 0, aeth(0x1f)) + RUN,
    'writer-rnr-nak': packet(WRITER, 0x11, FROM_UNA, 4, 0, aeth(0x21)) + time(2) + RUN * 3 +
    packet(WRITER, 0x11, FROM_UNA, 4, 0, aeth(0x20)) + time(255),
    'writer-access-nak': packet(WRITER, 0x11, FROM_UNA, 2, 0, aeth(0x62)) + RUN,
    'writer-invalid-nak': packet(WRITER, 0x11, FROM_UNA, 0, 0, aeth(0x61)),
    'writer-timeouts': time(30) + time(60) + time(90) + time(120) + time(200),
    'writer-beyond': packet(WRITER, 0x11, FROM_UNA, 100, 0, aeth(0x1f)),
    'reader-answered': packet(READER, 0x0d, FROM_UNA, 0, 256, aeth(0x1f)) +
    packet(READER, 0x0e, FROM_UNA, 1, 256) + packet(READER, 0x0e, FROM_UNA, 2, 256) +
    packet(READER, 0x0f, FROM_UNA, 3, 232, aeth(0x1f)) +
    packet(READER, 0x12, FROM_UNA, 4, 0, aeth(0x1f) + b'abcdefgh') +
    packet(READER, 0x10, FROM_UNA, 5, 99, aeth(0x1f)) + RUN,
    'reader-lost-middle': packet(READER, 0x0d, FROM_UNA, 0, 256, aeth(0x1f)) + RUN +
    packet(READER, 0x0e, FROM_UNA, 1, 256) + RUN * 3,
    'reader-atomic-early': packet(READER, 0x12, FROM_UNA, 4, 0, aeth(0x1f) + b'abcdefgh') + RUN * 3,
    'reader-ack': packet(READER, 0x11, FROM_UNA, 5, 0, aeth(0x1f)) + RUN,
    'reader-too-long': packet(READER, 0x10, FROM_UNA, 0, 260, aeth(0x1f)),
    'reader-wrong-length': packet(READER, 0x10, FROM_UNA, 0, 99, aeth(0x1f)),
    'reader-resume': packet(READER, 0x0d, FROM_UNA, 0, 256, aeth(0x1f)) + time(200) +
    packet(READER, 0x0d, FROM_UNA, 0, 256, aeth(0x1f)) + RUN,
    'posts': post(0, FRESH, 100) + post(4, FRESH, 40) + post(2, WRITER, 20) + post(7, FRESH, 20) +
    RUN * 2 + packet(FRESH, 0x04, ACKREQ, 0, 50) +
    packet(FRESH, 0x11, FROM_UNA, 1, 0, aeth(0x1f)) + RUN,
}



def write_run(n, *, bad=None, ackreq=False):
    """n WRITEs of one packet in a burst; bad: place -> the step instead."""
    steps = [packet(FRESH, 0x0a, REGION | RW | (ACKREQ if ackreq and i == n - 1 else 0), i, 64 - 3 * i,
                    reth(0x40 * i + i % 3, 64 - 3 * i)) for i in range(n)]
    for at, step in (bad or {}).items():
        steps[at] = step
    return b''.join(steps)


def send_run(n, receives, *, bad=None):
    steps = [packet(FRESH, 0x04, ACKREQ if i == n - 1 else SE if i == 1 else 0, i, 50 + i) for i in range(n)]
    for at, step in (bad or {}).items():
        steps[at] = step
    return b''.join(post(7, FRESH, 20) for _ in range(receives)) + RUN * 2 + b''.join(steps) + RUN * 2


# Packets that the execution engine takes as a run, and packets that end a run in the middle.
SCENARIOS.update({
    'run-writes': write_run(7) + RUN * 2 + write_run(9, ackreq=True) + RUN * 2,
    'run-writes-imm': write_run(5, bad={2: packet(FRESH, 0x0b, REGION | RW, 2, 9, reth(1, 9) + b'abcd')}) + RUN * 3,
    'run-writes-ro': write_run(6, bad={3: packet(FRESH, 0x0a, REGION | RO, 3, 64, reth(0x40, 64))}) + RUN * 3,
    'run-writes-beyond': write_run(6, bad={4: packet(FRESH, 0x0a, REGION | RW, 4, 64, reth(0x1240, 64))}) + RUN * 3,
    'run-writes-length': write_run(6, bad={2: packet(FRESH, 0x0a, REGION | RW, 2, 60, reth(0x40, 64))}) + RUN * 3,
    'run-writes-zero': write_run(6, bad={2: packet(FRESH, 0x0a, 0, 2, 0, reth(0, 0))}) + RUN * 3,
    'run-writes-gap': write_run(6, bad={3: b''}) + RUN * 2 + packet(FRESH, 0x0a, REGION | RW, 0, 64, reth(0, 64)) + RUN,
    'run-writes-twice': write_run(4) + RUN * 2 + packet(FRESH, 0x0a, REGION | RW, -1, 64, reth(0, 64)) +
    write_run(3) + RUN * 2,
    'run-writes-read': write_run(6, bad={3: packet(FRESH, 0x0c, REGION | RO, 3, 0, reth(5, 100))}) + RUN * 3,
    'run-writes-marked-pad': write_run(6, bad={3: packet(FRESH, 0x0a, REGION | RW | BAD_PAD, 3, 61,
                                                         reth(0x40, 61))}) + RUN * 3,
    'run-two-qps': b''.join(packet(qp, 0x0a, REGION | RW, i // 2, 32, reth(0x20 * i, 32))
                            for i, qp in enumerate((FRESH, FRESH, WRITER, WRITER, FRESH, FRESH))) + RUN * 3,
    'run-sends': send_run(5, 5) + send_run(4, 6),
    'run-sends-rnr': send_run(6, 3),
    'run-sends-too-long': send_run(5, 5, bad={3: packet(FRESH, 0x04, 0, 3, 100)}),
    'run-sends-imm': send_run(6, 6, bad={2: packet(FRESH, 0x05, SE, 2, 20, b'imm!')}),
    'run-sends-write': send_run(6, 6, bad={3: packet(FRESH, 0x0a, REGION | RW, 3, 64, reth(0, 64))}),
    'run-sends-gap': send_run(6, 6, bad={3: b''}),
    'run-sends-inv': send_run(5, 5, bad={3: packet(FRESH, 0x17, 0, 3, 30, b'\0\0\1\2')}),
})

READ_KIND, CAS_KIND, FADD_KIND = 4, 5, 6


def read_run(n, *, bad=None):
    """n READs of one packet in a burst, as write_run()."""
    steps = [packet(FRESH, 0x0c, REGION | (RO if i & 1 else RW), i, 0, reth(0x40 * i, 64 + 7 * i)) for i in range(n)]
    for at, step in (bad or {}).items():
        steps[at] = step
    return b''.join(steps)


def answer_run(kinds, *, bad=None, one_sge=True):
    """Requests of these kinds, and their answers in a burst; bad: place -> the step instead."""
    steps = [packet(FRESH, 0x10, FROM_UNA, i, 64 + 4 * i, aeth(0x1f, i)) if kind == READ_KIND else
             packet(FRESH, 0x12, FROM_UNA, i, 0, aeth(0x1f, i) + b'abcdefg%u' % i) for i, kind in enumerate(kinds)]
    for at, step in (bad or {}).items():
        steps[at] = step
    return (b''.join(post(kind, FRESH, 16 + i, one_sge=one_sge) for i, kind in enumerate(kinds)) + RUN * 2 +
            b''.join(steps) + RUN * 3)


# The same of READs, ATOMICs and their answers.
SCENARIOS.update({
    'run-reads': read_run(4) + RUN * 3 + read_run(3) + RUN * 3,
    'run-reads-many': read_run(9) + RUN * 4,
    'run-reads-long': read_run(4, bad={2: packet(FRESH, 0x0c, REGION | RO, 2, 0, reth(0, 257))}) + RUN * 4,
    'run-reads-zero': read_run(4, bad={2: packet(FRESH, 0x0c, 0, 2, 0, reth(0, 0))}) + RUN * 4,
    'run-reads-no-right': read_run(4, bad={2: packet(FRESH, 0x0c, REGION | SOURCE, 2, 0, reth(0, 64))}) + RUN * 4,
    'run-reads-beyond': read_run(4, bad={1: packet(FRESH, 0x0c, REGION | RO, 1, 0, reth(0x1fff, 64))}) + RUN * 4,
    'run-reads-gap': read_run(4, bad={2: b''}) + RUN * 3 + read_run(2) + RUN * 3,
    'run-reads-twice': read_run(3) + RUN * 2 + packet(FRESH, 0x0c, REGION | RO, -2, 0, reth(0, 64)) + read_run(2) + RUN * 3,
    'run-reads-twice-unanswered': read_run(3) + packet(FRESH, 0x0c, REGION | RO, 1, 0, reth(0x40, 71)) + RUN * 3,
    'run-reads-write': read_run(4, bad={2: packet(FRESH, 0x0a, REGION | RW | ACKREQ, 2, 64, reth(0, 64))}) + RUN * 3,
    'run-atomics': b''.join(packet(FRESH, 0x14, REGION | RW, i, 0, atomic(8 * i, i)) for i in range(4)) + RUN * 3 +
    packet(FRESH, 0x14, REGION | RW, -2, 0, atomic(0)) + RUN * 2,
    'run-atomics-unaligned': b''.join(packet(FRESH, 0x14, REGION | RW, i, 0, atomic(8 * i + i // 2, i))
                                      for i in range(4)) + RUN * 3,
    'run-answers': answer_run([READ_KIND] * 4) + answer_run([READ_KIND] * 3),
    'run-answers-atomic': answer_run([FADD_KIND] * 4) + answer_run([FADD_KIND, CAS_KIND, CAS_KIND]),
    'run-answers-mixed': answer_run([READ_KIND, FADD_KIND, READ_KIND, READ_KIND]) + answer_run([FADD_KIND, READ_KIND]),
    'run-answers-writes': answer_run([READ_KIND, 0, READ_KIND], bad={1: packet(FRESH, 0x11, FROM_UNA, 1, 0, aeth(0x1f))}),
    'run-answers-two-sges': answer_run([READ_KIND] * 3, one_sge=False),
    'run-answers-gap': answer_run([READ_KIND] * 4, bad={2: b''}) + time(60) + RUN * 2,
    'run-answers-twice': answer_run([READ_KIND] * 4, bad={2: packet(FRESH, 0x10, FROM_UNA, 1, 68, aeth(0x1f))}) + time(60),
    'run-answers-length': answer_run([READ_KIND] * 4, bad={2: packet(FRESH, 0x10, FROM_UNA, 2, 64, aeth(0x1f))}),
    'run-answers-nak': answer_run([READ_KIND] * 4, bad={2: packet(FRESH, 0x10, FROM_UNA, 2, 72, aeth(0x60))}),
    'run-answers-opcode': answer_run([READ_KIND] * 4, bad={2: packet(FRESH, 0x0d, FROM_UNA, 2, 72, aeth(0x1f))}),
    'run-answers-wrong-kind': answer_run([READ_KIND] * 4, bad={
        1: packet(FRESH, 0x12, FROM_UNA, 1, 0, aeth(0x1f) + b'abcdefgh')}),
    'run-answers-beyond': answer_run([READ_KIND] * 3) + packet(FRESH, 0x10, FROM_UNA, 0, 64, aeth(0x1f)) + RUN,
})

# Each makes its QP fail, so it is alone.
SCENARIOS.update(('fresh-atomic-write-bad-%u' % i, packet(FRESH, 0x1d, REGION | which, 0, n, reth(off, n)) + RUN)
                 for i, (which, off, n) in enumerate(((RW, 3, 8), (RW, 8, 9), (RO, 8, 8), (RW, 8, 0))))
SCENARIOS.update(('fresh-flush-bad-%u' % i, packet(FRESH, 0x1c, REGION | which, 0, 0, feth(8, n, bits)) + RUN)
                 for i, (which, n, bits) in enumerate(((RW, 64, 0), (RW, 64, 2), (RW, 64, 0x31), (RO, 64, 1),
                                                       (RW, 0xffffffff, 1), (RW, 0x8000, 1))))


def receive():
    for name, steps in SCENARIOS.items():
        put('fuzz_receive', name, steps)
    for path in sorted(glob.glob(CAPTURES)):
        steps = b''
        for f in list(frames(path))[:12]:
            if len(f) < 1200:
                steps += struct.pack('<BH', 1, len(f)) + f + RUN
        put('fuzz_receive', 'capture-' + os.path.basename(path)[:-5], steps[:4000])
    raw = next(frames(sorted(glob.glob(CAPTURES))[1]))
    put('fuzz_receive', 'raw', struct.pack('<BH', 0, len(raw)) + raw)


# places in ops[] of fuzz_wqe.c
WRITE, WRITE_IMM, SEND_OP, SEND_IMM, READ, CAS, FADD, ATOMIC_WRITE, FLUSH, BIND, INVALIDATE, KICK = range(2, 14)


def unit(region, off, length):
    return struct.pack('<BHH', region, off + 16, length)


def wqe(qp, slot, units, what=0, nop=0, nds=0):
    return struct.pack('<BBBBBBB', 2, qp, slot, len(units), what, nop, nds) + b''.join(units)


def doorbell(qp, op, size, how=0):
    return bytes((3, qp, op, size, how))


def answer(qp, how, length=0):
    return bytes((5, qp, how, length))


RW_REGION, ALL_RIGHTS = 0, 14


def bind(window, region, off, length, access, what=8, nop=0, nds=0):
    return wqe(0, 0, [], what, nop, nds) + struct.pack('<BBHHB', window, region, off + 16, length, access)


def flush(length, bits, units=()):
    """A flush unit behind the remote address of the first WQE, which begins at the queue's."""
    return (wqe(0, 0, list(units), 2) + bytes((0, 0)) +
            struct.pack('<HBII8x', 32, 16, length, bits))


QUEUES = {
    'bind': bind(0, RW_REGION, 0, 500, ALL_RIGHTS) + doorbell(0, BIND, 3) + RUN * 2 +
    bind(0, RW_REGION, 5, 50, 4 + 32) + doorbell(0, BIND, 3) + RUN * 2 +
    bind(0, RW_REGION, 0, 0, 0) + doorbell(0, BIND, 3) + RUN * 2,
    'bind-invalidate': bind(1, RW_REGION, 0, 500, ALL_RIGHTS) + doorbell(0, BIND, 3) + RUN * 2 +
    wqe(0, 0, [], 16 + 32) + doorbell(0, INVALIDATE, 1) + RUN * 2,
    'bind-twice': bind(1, RW_REGION, 0, 500, ALL_RIGHTS) + doorbell(0, BIND, 3) + RUN * 2 +
    bind(1, RW_REGION, 0, 500, ALL_RIGHTS) + doorbell(0, BIND, 3) + RUN * 2,
    'bind-elsewhere': b''.join(bind(0, r, 0, 500, 4) + doorbell(r, BIND, 3) + RUN * 2
                               for r in range(4)),
    'bind-damaged': bind(0xc0, RW_REGION, 0, 500, 4) + doorbell(0, BIND, 3) + RUN * 2,
    'bind-beyond': bind(0, RW_REGION, 0x1f00, 0x1f00, 4) + doorbell(0, BIND, 3) + RUN * 2,
    'bind-sizes': b''.join(bind(1, RW_REGION, 0, 500, ALL_RIGHTS) + doorbell(0, BIND, size)
                           for size in range(6)) + RUN * 2,
    'invalidate-unbound': wqe(0, 0, [], 16) + doorbell(0, INVALIDATE, 1) + RUN * 2,
    'write': wqe(0, 0, [unit(2, 0, 600)], 1) + doorbell(0, WRITE, 3) + RUN * 2 + answer(0, 0) + RUN,
    'write-list': wqe(0, 0, [unit(2, 5, 100), unit(0, 1, 7), unit(1, 9, 0)], 1) +
    doorbell(0, WRITE_IMM, 5) + RUN * 2 + answer(0, 0),
    'chain': wqe(0, 0, [unit(2, 0, 60)], 0, 0x0a, 2) + wqe(0, 1, [unit(2, 0, 60)], 0, 0x0a, 2) +
    wqe(0, 2, [unit(2, 64, 60)]) + doorbell(0, SEND_OP, 2) + RUN * 2 + answer(0, 0) + RUN,
    'chain-endless': b''.join(wqe(0, i, [unit(2, 0, 60)], 0, 0x0a, 2) for i in range(4)) +
    doorbell(0, SEND_OP, 2) + RUN * 4,
    'read': wqe(0, 0, [unit(3, 0, 100)], 1) + doorbell(0, READ, 3) + RUN * 2 + answer(0, 1, 100),
    'read-into-source': wqe(0, 0, [unit(2, 0, 100)], 1) + doorbell(0, READ, 3) + RUN * 2 +
    answer(0, 1, 100),
    'atomic': wqe(0, 0, [unit(3, 0, 8)], 2) + doorbell(0, FADD, 4) + RUN * 2 + answer(0, 2),
    'atomic-wrong-size': wqe(0, 0, [unit(3, 0, 9)], 2) + doorbell(0, CAS, 4) + RUN * 2,
    'atomic-write': wqe(0, 0, [unit(2, 0, 8)], 1) + doorbell(0, ATOMIC_WRITE, 3) + RUN * 2 + answer(0, 1) + RUN,
    'atomic-write-wrong-size': wqe(0, 0, [unit(2, 0, 9)], 1) + doorbell(0, ATOMIC_WRITE, 3) + RUN * 2,
    'atomic-write-inline': wqe(0, 0, [], 5) + struct.pack('<H', 8) + doorbell(0, ATOMIC_WRITE, 3) + RUN * 2 +
    answer(0, 1) + RUN,
    'flush': flush(64, 1) + doorbell(0, FLUSH, 3) + RUN * 2 + answer(0, 1) + RUN,
    'flush-bad': flush(64, 0) + doorbell(0, FLUSH, 3) + flush(1 << 31, 0x31) + doorbell(0, FLUSH, 3) + RUN * 2,
    'flush-with-data': flush(64, 1, [unit(2, 0, 8)]) + doorbell(0, FLUSH, 4) + RUN * 2,
    'bad-key': wqe(0, 0, [unit(0x82, 0, 9)], 0) + doorbell(0, SEND_OP, 2) + RUN * 2,
    'bad-range': wqe(0, 0, [unit(2, 0x1390, 0x300)], 0) + doorbell(0, SEND_OP, 2) + RUN * 2,
    'inline': wqe(0, 0, [], 4) + struct.pack('<H', 40) + doorbell(0, SEND_OP, 4) + RUN * 2,
    'inline-too-long': wqe(0, 0, [], 4) + struct.pack('<H', 2000) + doorbell(0, SEND_OP, 4) + RUN,
    'sizes': b''.join(doorbell(0, op, size) + RUN for op in range(KICK + 1) for size in (0, 1, 33, 63)),
    'unbuilt': doorbell(0, 1, 2) + doorbell(1, BIND, 4) + doorbell(2, INVALIDATE, 2) + RUN * 2,
    'wrong-index': doorbell(0, SEND_OP, 2, 0xf3) + doorbell(2, SEND_OP, 2, 0xff) + RUN * 2,
    'kick': doorbell(0, KICK, 0) + doorbell(3, KICK, 0) + RUN * 2,
    'any-doorbell': b''.join(bytes((4,)) + bytes(range(i, i + 8)) for i in range(0, 200, 9)) + RUN,
    'producer-lies': bytes((1, 3)) + struct.pack('<HB', 1, 4) + b'\xff\xff\xff\x7f' + RUN +
    answer(3, 3, 50) + RUN,
    'receive-wqe': bytes((1, 3)) + struct.pack('<HB', 0, 64) + bytes(range(1, 65)) + RUN +
    answer(3, 3, 50) + RUN,
    'send-wqe': bytes((0, 2)) + struct.pack('<HB', 0, 64) + b'\xff' * 64 + answer(2, 4) + RUN * 2 +
    bytes((6, 100)),
}


def wqes():
    for name, steps in QUEUES.items():
        put('fuzz_wqe', name, steps)


def bell(op, whose, index=0, size=2):
    return struct.pack('<BBHB', op, whose, index, size)


def doorbells():
    send, kick = 0x0a, 0x1f
    request, receive, run, some = b'\5\0\x80\x40', b'\6\0', b'\x0f', b'\x0e\x40'
    make, destroy = (lambda i: bytes((10, i))), (lambda i: bytes((11, i)))
    seeds = {
        'own': request + run + receive + request + some,
        'foreign': b''.join(b'\0' + bell(op, whose) for op in (send, 8, kick, 2)
                            for whose in range(4, 10)),
        'gone': destroy(0) + b'\0' + bell(send, 0) + run + make(0) + b'\0' + bell(send, 10) + some,
        'reserved': b''.join(b'\0' + bell(send, 11, n) for n in (0, 1, 2, 0x17, 0xffff)) + some,
        'out-of-turn': b''.join(b'\1' + bytes((slot,)) + bell(send, slot % 4, slot)
                                for slot in (9, 8, 255, 0, 7, 17, 16)) + some,
        'torn': b''.join(b'\2' + bytes((slot, half)) + b'\1\2\3\4' + run
                         for slot in (8, 9) for half in (4, 5, 2, 3, 0, 1)) + some,
        'register': b'\3' + bell(send, 0) + run + b'\3' + bell(send, 4) + some,
        'ones': b'\4' + b'\xff' * 8 + some,
        'many': request * 12 + some + (b'\0' + bell(send, 0, 3)) * 12 + some,
        'cq': request + some + b''.join(b'\7\0' + bytes((what,)) + struct.pack('<H', v)
                                        for what in (0, 4, 1, 2, 3) for v in (0, 1, 7, 0xffff)) +
              request * 3 + some,
        'records': b''.join(b'\x08' + bytes((q, at)) + struct.pack('<H', v) + receive + run
                            for q in (0, 1, 4) for at in (1, 32) for v in (1, 9, 0x8001)) + some,
        'queue': request + b'\x09\0' + struct.pack('<HB', 0, 64) + bytes(range(64)) +
                 b'\0' + bell(8, 0, 1, 4) + some,
        'srq': make(6) + destroy(6) + make(1) + b'\6\4' * 4 + b'\5\1\x80\x20' + some + destroy(1) +
               destroy(6) + make(6) + make(1) + b'\6\4' + some,
        'storm': b''.join(make(i) for i in (2, 3)) + request + destroy(0) + make(0) + request +
                 b''.join(destroy(i) for i in (0, 1, 2, 3, 4, 5, 6, 7)) +
                 b''.join(make(i) for i in (7, 4, 5, 6, 0, 1, 2, 3)) + request + some,
        'states': b''.join(b'\x0c\0' + bytes((state,)) + request + b'\0' + bell(kick, 0)
                           for state in (6, 0, 3, 4, 5, 3, 1)) + some,
        'restart': request + b'\x0d' + request + b'\1\0' + bell(send, 0) + b'\x0d' + request + some,
    }
    for name, steps in seeds.items():
        put('fuzz_doorbell', name, steps)


COMMANDS = 56  # at least as many as HCA_CMD_LIST has


def command(which, mod=0, in_mod=0, how=0):
    return bytes((0, which, mod, in_mod, how))


def hcr():
    for which in range(COMMANDS):
        steps = b''.join(command(which, mod, in_mod, how) for mod in (0, 1, 2, 3)
                         for in_mod, how in ((0, 0), (1, 0), (1, 2), (2, 0), (255, 0), (1, 12)))
        put('fuzz_hcr', 'command-%02d' % which, b'\1' + steps)
    images = b''.join(bytes((1, kind + 8 * i)) + command(which, mod, in_mod, how)
                      for kind, i, which, mod, in_mod, how in (
                          (2, 12, 6, 0, 12, 0), (3, 12, 8, 0, 2, 0), (5, 4, 12, 0, 4, 0),
                          (6, 5, 16, 0, 1, 2), (6, 6, 17, 0, 1, 2), (6, 7, 18, 0, 1, 2)))
    put('fuzz_hcr', 'images', b'\1' + images + b'\7' * 3 + command(20, 3, 1, 2))
    put('fuzz_hcr', 'not-initialized', b'\0' + images + command(0) + command(2))
    put('fuzz_hcr', 'events', b'\1' + b''.join(command(31, 0, 31, 1) + b'\7' for _ in range(12)))
    put('fuzz_hcr', 'register', b'\1' + b''.join(
        b'\4' + bytes((i * 7 + j * 13) & 255 for j in range(24)) + bytes((i, 0, 0x80, 0))
        for i in range(16)))
    put('fuzz_hcr', 'resets', b'\1' + b''.join(bytes((5, 40, 1, 0)) + b'\7' + command(31, 0, 31)
                                              for _ in range(4)))
    put('fuzz_hcr', 'ones', b'\1' + b''.join(
        bytes((1, 6 + 8 * 5)) + bytes((3, at, 0, 4)) + command(16, 0, 1, 2)
        for at in range(0, 0x60, 8)))


def ubcm():
    low, high, late = b'\0', b'\x80', lambda ms: b'\2' + struct.pack('<H', ms)
    get, lose = b'\3\0', b'\5\0'
    tp = struct.pack('>HHIIHHHHBBBB', 2, 20, 77 << 8, 5 << 8, 1024, 512, 4096, 9, 2, 3, 0, 0)
    timer = struct.pack('>HHIBBBB', 3, 8, 0, 1, 7, 16, 1)

    def own(type, end=1, transaction=0, status=0, tlvs=b''):
        return bytes((6 | end << 7, type - 1, status, transaction, len(tlvs))) + tlvs
    link = low + get * 3
    seeds = {
        'handshake': link + b'\1' + late(60001) + get * 2 + late(200),
        'both': low + high + get * 4,
        'lossy': low + lose + late(200) + get + lose + late(400) + get * 4,
        'gives-up': low + lose + late(30000) + lose * 7 + low + get * 3,
        'no-rtu': low + get * 2 + lose + late(30000) + lose * 7 + get,
        'dead': link + b'\7\1\1' + b'\7\2\1' + get * 2 + high + get * 3,
        'drained': link + b'\1' + late(60001) + get * 2 + b'\7\1\2' + b'\7\2\2' + late(200),
        'damaged': low + b'\4\0\x35\x01' + low + late(200) + get + b'\4\0\x40\xff' + late(900),
        'own-req': own(1, transaction=9, tlvs=tp + timer) + get * 2 + own(3, transaction=0, tlvs=tp),
        'own-rep': low + own(2, end=0, tlvs=tp + timer) + get + own(2, end=0, tlvs=tp + timer),
        'own-rej': link + own(4, status=3) + get + own(4, end=0, status=2),
        'own-disc': link + own(5, status=6, tlvs=tp) + own(5, status=7, tlvs=tp * 2) + own(6),
        'unknown-tlv': own(1, transaction=8, tlvs=b'\1\0\0\3abc\0' + tp + timer) + get,
        'too-many': own(1, transaction=8, tlvs=b''.join(
            tp[:6] + bytes((i,)) + tp[7:] for i in range(10)) + timer) + get,
    }
    for name, steps in seeds.items():
        put('fuzz_ubcm', name, steps)


if __name__ == '__main__':
    ubcm()
    roce_parse()
    receive()
    wqes()
    doorbells()
    hcr()
    sys.exit(0)
