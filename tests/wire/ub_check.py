#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ub_check.py [--window N] [--partial] [--bare] FILE...: checks captures of UB by the rules of
the wire alone, without code of the device: each frame's form and ICRC, and across frames of a
TP: PSNs used in order, once each, resent alike; TPMSNs contiguous; all packets but the last of an
operation one MTU; acknowledgements to the sender, at its source port, of sent packets; the
window. The capture has each frame once, at its sender. --partial: it may begin in the middle.
--bare: Reads, atomics and their responses have no TAIDETAH and no OFSTETAH."""
import struct
import sys
import zlib

PORT = 4792
MOD = 1 << 24
MTUS = (1024, 4096)
MAETAH = {3: 8, 4: 12, 5: 8}        # offset of MAETAH behind BTAH's begin, by opcode, if no UDETAH
REQUESTS = {0: 8, 1: 24, 3: 16, 4: 36, 5: 40, 6: 24, 0x14: 16, 0x15: 16, 0x17: 16, 0x10: 4,
            **{op: 20 for op in range(7, 16)}}      # bytes behind BTAH, default forms
RESPONSES = {0x11: 0, 0x12: 8, 0x13: 4}
BARE = {6: 8, 0x12: 8, 0x13: 4, **{op: 4 for op in range(7, 16)}}   # bytes that are not there then
TOKENLESS = (0x10, 0x15)


class Wrong(Exception):
    pass


def need(good, text, *args):
    if not good:
        raise Wrong(text % args)


def blocks_of_pcapng(data):
    order, at = '<', 0
    while at + 12 <= len(data):
        kind = struct.unpack_from(order + 'I', data, at)[0]
        if kind == 0x0a0d0d0a:
            order = '<' if data[at + 8:at + 12] == b'\x4d\x3c\x2b\x1a' else '>'
        size = struct.unpack_from(order + 'I', data, at + 4)[0]
        need(size >= 12 and at + size <= len(data), 'the file ends inside a block')
        if kind == 6:
            caught = struct.unpack_from(order + 'I', data, at + 20)[0]
            yield data[at + 28:at + 28 + caught]
        at += size


def frames_of(data):
    if data[:4] == b'\x0a\x0d\x0d\x0a':
        yield from blocks_of_pcapng(data)
        return
    need(data[:4] in (b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1', b'\xa1\xb2\xc3\xd4',
                      b'\xa1\xb2\x3c\x4d'), 'no capture')
    order = '<' if data[0] in (0xd4, 0x4d) else '>'
    at = 24
    while at < len(data):
        need(at + 16 <= len(data), 'the file ends inside a record')
        size = struct.unpack_from(order + 'I', data, at + 8)[0]
        need(at + 16 + size <= len(data), 'the file ends inside a record')
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def be(data, at, size):
    return int.from_bytes(data[at:at + size], 'big')


class Frame:
    """Fields of one frame; raises Wrong. None of it is UB: self.ub is False."""

    def __init__(self, data, bare=False):
        self.bare = bare
        at = 18 if data[12:14] == b'\x81\x00' else 14
        kind = be(data, at - 2, 2)
        self.ub = False
        if kind == 0x0800 and len(data) >= at + 28 and data[at + 9] == 17:
            udp = at + 4 * (data[at] & 15)
        elif kind == 0x86dd and len(data) >= at + 48 and data[at + 6] == 17:
            udp = at + 40
        else:
            return
        if be(data, udp + 2, 2) != PORT:
            return
        self.ub, self.v6, self.data = True, kind == 0x86dd, data
        self.judge_ip(data, at, udp)
        self.judge_icrc(data, at, udp)
        self.judge_transport(data[udp + 8:-4])

    def judge_ip(self, data, at, udp):
        if self.v6:
            self.src, self.dst = data[at + 8:at + 24], data[at + 24:at + 40]
            need(data[at] >> 4 == 6, 'IP version')
            need(be(data, at + 4, 2) == len(data) - udp, 'IPv6 payload length')
        else:
            self.src, self.dst = data[at + 12:at + 16], data[at + 16:at + 20]
            need(data[at] == 0x45, 'IPv4 version or options')
            need(be(data, at + 2, 2) == len(data) - at, 'IPv4 total length')
            need(be(data, at + 6, 2) == 0x4000, 'DF or fragment offset')
        self.sport = be(data, udp, 2)
        need(be(data, udp + 4, 2) == len(data) - udp, 'UDP length')
        need(be(data, udp + 6, 2) == 0, 'UDP checksum is not 0')
        need(len(data) - udp >= 8 + 16 + 4, 'too short')

    def judge_icrc(self, data, at, udp):
        masked = bytearray(data[at:-4])
        for i in (1, 2, 3, 7) if self.v6 else (1, 8, 10, 11):
            masked[i] = 255
        if self.v6:
            masked[0] |= 15
        masked[udp - at + 6:udp - at + 8] = b'\xff\xff'
        need(zlib.crc32(bytes(masked)) == int.from_bytes(data[-4:], 'little'), 'ICRC')

    def judge_transport(self, tph):
        self.tph = tph
        self.last, self.opcode = tph[0] >> 7, tph[0] & 127
        self.pad, self.nlp = tph[1] >> 4 & 3, tph[1] & 15
        self.here, self.there = be(tph, 2, 3), be(tph, 5, 3)
        self.fake = tph[8] >> 6 & 1
        self.psn, self.tpmsn = be(tph, 9, 3), be(tph, 13, 3)
        need(len(tph) % 4 == 0, 'not whole words')
        need(tph[1] >> 6 == 0, 'transport version')
        need(self.opcode in (0, 1, 2, 3, 5, 6, 8), 'transport opcode %02x', self.opcode)
        if self.opcode == 0:
            need(not any(tph[2:16]), 'UTPH has bytes that are not 0')
            need(self.last, 'UTP packet without last')
        else:
            need(tph[8] & 0x3f == 0, 'reserved bits of the RTPH')
        if self.opcode > 1:
            self.judge_answer(tph)
        elif self.opcode == 1 or self.nlp:
            need(tph[12] == 0, 'RSPST in a TP Packet')
            need(self.nlp in (0, 1), 'next layer %d', self.nlp)
        if self.opcode <= 1 and not self.fake:
            self.judge_transaction(tph, 16 if self.nlp == 0 else 52)

    def judge_answer(self, tph):
        need(self.nlp == 0 and self.pad == 0, 'NLP or pad of an acknowledgement')
        size = {2: 16, 3: 24, 5: 20, 6: 28, 8: 32}[self.opcode]
        need(len(tph) >= size, 'acknowledgement is too short')
        if self.opcode in (5, 6):
            code = be(tph, size - 4, 1) & 7
            need(code <= 4, 'size code of the bitmap')
            self.bitmap, self.max_rcv = tph[size:], be(tph, size - 3, 3)
            size += 8 << code
        need(len(tph) == size, 'length of an acknowledgement')

    def judge_transaction(self, tph, at):
        need(len(tph) >= at + 8, 'too short')
        ta, self.ta = tph[at:], tph[at]
        need(ta[1] >> 6 == 0, 'transaction version')
        if self.ta in RESPONSES:
            self.head = 8 + RESPONSES[self.ta]
            need(ta[1] & 0x33 == 0 and ta[5] >> 6 == 0, 'reserved bits of the ATAH')
        else:
            need(self.ta in REQUESTS or self.ta == 0x18, 'transaction opcode %02x', self.ta)
            need(ta[1] & 2 == 0 and ta[5] & 0x80 == 0, 'reserved bits of the BTAH')
            self.head = 8 + REQUESTS.get(self.ta, 16) + 4 * (ta[1] & 1)
            if ta[1] & 8 and self.ta not in TOKENLESS:
                self.head += 4
            if self.ta in (0x14, 0x18):
                self.head += be(ta, 8 + 4 * (ta[1] & 1) + 12, 4) // 8
        self.head -= BARE.get(self.ta, 0) if self.bare else 0
        self.size = len(ta) - self.head - self.pad
        need(self.size >= 0, 'too short for its headers')
        need((self.size + self.pad) % 4 == 0 and self.pad == -self.size % 4, 'pad count')
        need(not any(ta[len(ta) - self.pad:] if self.pad else b''), 'pad is not 0')
        self.head_bytes = ta[:self.head]
        if self.ta in MAETAH:
            at = MAETAH[self.ta] + 4 * (ta[1] & 1)
            self.address, self.length = be(ta, at, 8), be(ta, at + 12, 4)
            need(self.size <= self.length, 'payload exceeds the length of its segment')
        if self.ta == 5:        # Notify_TokenValue is reserved without TV_EN
            at = 8 + 4 * (ta[1] & 1) + 16
            need(ta[1] & 8 or not be(ta, at + 12, 4), 'value of a notify without TV_EN')
            need(not be(ta, at + 8, 4) & 0xf00000ff, 'reserved bits of the NTFETAH')


class Channel:
    """Packets sent by one end of a TP."""

    def __init__(self):
        self.newest = None      # PSN
        self.sent = {}          # PSN: fields that must be the same when it is sent again
        self.ports = set()
        self.una = None
        self.mtu = None
        self.operation = None   # first frame of the operation that goes on
        self.tpmsn = None
        self.count = 0

    def identity(self, f):
        return (f.last, f.fake, f.tpmsn, f.tph[16:])

    def packet(self, f, window, partial):
        self.ports.add(f.sport)
        if self.newest is not None and (f.psn - self.newest - 1) % MOD >= MOD // 2:
            if f.psn in self.sent:
                need(self.sent[f.psn][:3] == self.identity(f)[:3] and
                     len(self.sent[f.psn][3]) == len(f.tph) - 16, 'PSN %06x is another packet when '
                     'it is sent again', f.psn)
            else:
                need(partial, 'PSN %06x is used below the first', f.psn)
            return
        need(self.newest is None or f.psn == (self.newest + 1) % MOD, 'PSN %06x behind %06x', f.psn,
             self.newest or 0)
        if self.una is None:
            self.una = f.psn
        self.newest = f.psn
        self.sent[f.psn] = self.identity(f)
        self.sent.pop((f.psn - 8192) % MOD, None)
        need((f.psn - self.una) % MOD < window, 'PSN %06x: more than %d in flight', f.psn, window)
        if not f.fake:
            self.place(f, partial)

    def place(self, f, partial):
        if self.operation is None:
            if self.tpmsn is not None:
                need(f.tpmsn == (self.tpmsn + 1) % MOD, 'TPMSN %06x behind %06x', f.tpmsn, self.tpmsn)
            elif not partial:
                need(f.tpmsn == 1, 'first TPMSN is %06x', f.tpmsn)
            self.operation, self.count = f, 0
        else:
            need(f.tpmsn == self.tpmsn, 'TPMSN %06x inside operation %06x', f.tpmsn, self.tpmsn)
            self.follow(f)
        self.tpmsn = f.tpmsn
        self.count += 1
        if not f.last:
            need(f.size in MTUS, 'a packet of %d bytes is not the last', f.size)
            need(self.mtu in (None, f.size), 'MTU is %s, then %d', self.mtu, f.size)
            self.mtu = f.size
            return
        need(f.size or self.count == 1, 'the last packet of several is empty')
        need(f.size <= (self.mtu or MTUS[-1]), 'last packet exceeds the MTU')
        self.operation = None

    def follow(self, f):
        first = self.operation
        need(first.tph[18:20] == f.tph[18:20], 'TASSN changes inside an operation')
        need(first.tph[21:24] == f.tph[21:24], 'RC id changes inside an operation')
        if f.ta in MAETAH and first.ta in MAETAH:
            need(f.length == first.length, 'segment length changes inside an operation')
            need(f.address == first.address + self.count * (self.mtu or 0),
                 'address of packet %d of an operation', self.count)

    def answer(self, f):
        need(self.newest is not None, 'acknowledgement of a TP that sent nothing')
        need(f.sport in self.ports, 'acknowledgement from port %d, nothing came from it', f.sport)
        if f.opcode == 8:
            need(f.psn == 0, 'PSN %06x in a CNP', f.psn)
            need(f.tph[16:32] == b'\xc0' + bytes(15), 'CETPH %s of a CNP', f.tph[16:32].hex())
            return
        negative = f.opcode in (2, 3) and f.tph[12] == 0x60
        reach = f.psn if not negative else (f.psn - 1) % MOD
        need((self.newest - reach) % MOD < MOD // 2, 'PSN %06x is acknowledged, %06x is the newest',
             reach, self.newest)
        if f.opcode in (5, 6):
            need((self.newest - f.max_rcv) % MOD < MOD // 2, 'MaxRcvPSN %06x was never sent',
                 f.max_rcv)
            need(f.bitmap[0] & 1, 'bit 0 of a bitmap is not set')
            for k in range(8 * len(f.bitmap)):
                need(not f.bitmap[k >> 3] >> (k & 7) & 1 or
                     (f.max_rcv - f.psn - k) % MOD < MOD // 2, 'bit %d is behind MaxRcvPSN', k)
        if (reach + 1 - self.una) % MOD < MOD // 2:
            self.una = (reach + 1) % MOD


class Checker:
    def __init__(self, window=2048, partial=False, bare=False):
        self.window, self.partial, self.bare = window, partial, bare
        self.channels = {}
        self.frames = 0

    def take(self, data):
        f = Frame(data, self.bare)
        if not f.ub:
            return
        self.frames += 1
        if f.opcode == 0:
            return
        if f.opcode == 1:
            key = (f.src, f.dst, f.here, f.there)
            self.channels.setdefault(key, Channel()).packet(f, self.window, self.partial)
            return
        channel = self.channels.get((f.dst, f.src, f.there, f.here))
        need(channel is not None or self.partial, 'acknowledgement of a TP that sent nothing: '
             'addresses or TPNs')
        if channel is not None:
            channel.answer(f)


def check(data, window=2048, partial=False, bare=False):
    """Complaints about a capture, and the number of its frames of UB."""
    checker, bad = Checker(window, partial, bare), []
    try:
        for number, frame in enumerate(frames_of(data), 1):
            try:
                checker.take(frame)
            except Wrong as wrong:
                bad.append('frame %d: %s' % (number, wrong))
    except Wrong as wrong:
        bad.append(str(wrong))
    return bad, checker.frames


def main(args):
    window, partial, bare = 2048, '--partial' in args, '--bare' in args
    args = [a for a in args if a not in ('--partial', '--bare')]
    if args[:1] == ['--window']:
        window, args = int(args[1]), args[2:]
    if not args:
        sys.exit(__doc__)
    total = 0
    for path in args:
        with open(path, 'rb') as file:
            bad, frames = check(file.read(), window, partial, bare)
        for line in bad[:100]:
            print('%s: %s' % (path, line))
        print('%s: %d frames of UB, %d complaints' % (path, frames, len(bad)))
        total += len(bad)
    return 1 if total else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
