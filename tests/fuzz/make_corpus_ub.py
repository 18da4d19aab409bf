#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of the fuzz targets of UB, as make_corpus.py does for the others."""
import struct
import sys

from make_corpus import command, put

# Bits of a packet's first byte, and of the second one of a request
LAST, ASK, ODD_PSN, ODD_MSN, OTHER, UTP = 1, 2, 4, 8, 16, 32
TO_RW, TO_RO, TO_VERBS, TO_LOCAL = 8, 0, 12, 4
UB_SEND, UB_SEND_IMM, UB_WRITE, UB_WRITE_IMM, UB_NOTIFY, UB_READ, UB_CAS = 0, 1, 3, 4, 5, 6, 7
UB_LOAD, UB_FADD, UB_WRITE_BE = 10, 11, 20
TAACK, READ_RESPONSE, ATOMIC_RESPONSE = 0, 1, 2


def ub_request(op, what, offset=16, length=64, payload=None, ctl=LAST | ASK, odd=b'', patches=b''):
    payload = length if payload is None else payload
    return (bytes((1, ctl | len(patches) // 2 << 6)) + odd +
            struct.pack('<BBHHH', op, what, offset, length, payload) + patches)


def ub_response(op, nth=0, status=0, offset=0, payload=0, ctl=LAST | ASK, odd=b'', jfs=0, patches=b''):
    return (bytes((2, ctl | len(patches) // 2 << 6)) + odd +
            struct.pack('<BBBH', op | jfs * 4 | nth * 8, status, offset, payload) + patches)


def ub_ack(op, psn=0, status=0, size=0, max_rcv=0, bitmap=b'\xff' * 8, patches=b''):
    return (bytes((3, op | len(patches) // 2 << 6)) + struct.pack('<bBBb', psn, status, size, max_rcv) +
            bitmap + patches)


def ub_post(kind, quarter=10, jfs=0):
    return bytes((4 | jfs * 8, kind, quarter))


def ub_recv(sges, eighth=32, jfr=0):
    return bytes((5 | jfr * 8, sges, eighth))


def ub_receive():
    run, known, jfr, own = b'\7', 0x10, 0x00, 0x30
    wait = lambda n: bytes((6, n))
    first = lambda length: ub_request(UB_WRITE, TO_RW, 0x40, length, 1024, 0)
    all_ops = [(op, what) for op in range(0x1f) for what in (TO_RW, TO_RO | 0x10)]
    seeds = {
        'writes': ub_request(UB_WRITE, TO_RW) + first(2000) + ub_request(UB_WRITE, TO_RW, 0x440, 2000, 976) +
        run + ub_request(UB_NOTIFY, TO_RW, 16, 32),
        'wrong-token': b''.join(ub_request(op, TO_RW, ctl=LAST | OTHER) for op in (UB_WRITE, UB_READ, UB_FADD)) + run * 3,
        'not-theirs': b''.join(ub_request(op, what, 16, 8) for op in (UB_WRITE, UB_READ, UB_FADD)
                               for what in (TO_VERBS, TO_LOCAL, TO_RO)) + run * 3,
        'beyond': ub_request(UB_WRITE, TO_RW, 0x1240) + ub_request(UB_READ, TO_RO, 0, 4096, 0) +
        ub_request(UB_WRITE, TO_RW, 16, 65535, 1024) + run,
        'every': b''.join(ub_request(op, what, 16, 8, 8) for op, what in all_ops) + run * 3,
        'reads': ub_request(UB_READ, TO_RO, 16, 4000, 0) + run * 3 + ub_ack(0, 3) + ub_ack(0, 0) + run,
        'atomics': ub_request(UB_FADD, TO_RW, 31, 8) + ub_request(UB_CAS, TO_RW, 31, 16) +
        ub_request(UB_LOAD, TO_RW, 31, 64) + ub_request(UB_FADD, TO_RW, 16, 8) + run * 2,
        'enables': ub_request(UB_WRITE_BE, TO_RW, 16, 512) + ub_request(UB_WRITE_BE, TO_RW, 16, 65) + run,
        'sends': ub_recv(2) + ub_recv(1, jfr=1) + ub_request(UB_SEND_IMM, own, 0, 0, 100) +
        ub_request(UB_SEND, jfr, 0, 0, 50) + ub_request(UB_WRITE_IMM, own | TO_RW, 16, 32) + run * 2,
        'send-parts': ub_recv(4, 90) + ub_request(UB_SEND, own, 0, 0, 1024, 0) +
        ub_request(UB_SEND, own, 1, 0, 100) + run,
        'send-late-part': ub_recv(4, 90) + ub_request(UB_SEND, own, 1, 0, 100, ctl=LAST | ODD_PSN, odd=b'\1') +
        ub_request(UB_SEND, own, 0, 0, 1024, ctl=ODD_PSN | ODD_MSN, odd=b'\xfe\xff') + run,
        'send-theirs': b''.join(ub_request(op, 0x20, 0, 0, 64) for op in (UB_SEND, UB_SEND_IMM)) + run,
        'not-ready': ub_request(UB_SEND, own, 0, 0, 64) + run + ub_request(UB_SEND, known, 0, 0, 64) + wait(3),
        'too-long': ub_recv(1, 1) + ub_request(UB_SEND, own, 0, 0, 1024, 0) + ub_request(UB_SEND, own, 1, 0, 9),
        'datagrams': ub_recv(2) + ub_request(UB_SEND, known, 0, 0, 64, LAST | UTP) * 3 +
        ub_request(UB_WRITE, TO_RW, ctl=LAST | UTP) + run,
        'disagree': ub_request(UB_WRITE, TO_RW, 16, 3000, 1024, 0) + ub_request(UB_SEND, own, 1, 0, 64) + run * 2,
        'same-msn': ub_request(UB_WRITE, TO_RW) + ub_request(UB_WRITE, TO_RW, ctl=LAST | ODD_MSN, odd=b'\xff') + run,
        'again': ub_request(UB_WRITE, TO_RW) * 2 + ub_request(UB_WRITE, TO_RW, ctl=LAST | ODD_PSN | ODD_MSN,
                                                                  odd=b'\xff\xff') + run,
        'holes': b''.join(ub_request(UB_WRITE, TO_RW, ctl=LAST | ODD_PSN, odd=b'\1') for _ in range(20)) + run +
        wait(9),
        'window': ub_request(UB_WRITE, TO_RW, ctl=LAST | ODD_PSN, odd=b'\x7f') * 2 + run,
        'too-many': b''.join(ub_request(UB_READ, TO_RO, 16, 100, 0) for _ in range(40)) + run * 4,
        'e-bit': ub_request(UB_WRITE, TO_RW, patches=b'\x15\x40') + ub_request(UB_WRITE, TO_RW, patches=b'\x11\x20') +
        run,
        'reserved-rc-type': ub_request(UB_WRITE, TO_RW, patches=b'\x15\x30') + run,
        'fake': ub_request(UB_WRITE, TO_RW, patches=b'\x08\x40') + run,
        'eidh': ub_request(UB_WRITE, TO_RW, patches=b'\x01\x01') + ub_request(UB_WRITE, TO_RW, patches=b'\x01\x03'),
        'poison': ub_recv(1) + ub_request(UB_SEND, own | 0x80, 0, 0, 64) + ub_request(UB_WRITE, TO_RW | 0x80) + run,
        'asked': ub_post(0, 255) + ub_post(2, 200) + ub_post(6) + ub_post(3, 9) + run * 4 +
        ub_response(TAACK) + ub_response(READ_RESPONSE, 1, 0, 0, 1024, 0) +
        ub_response(READ_RESPONSE, 1, 0, 1, 1024, 0) + ub_response(READ_RESPONSE, 1, 0, 2, 1024, 0) +
        ub_response(READ_RESPONSE, 1, 0, 3, 128) + ub_response(ATOMIC_RESPONSE, 2, 0, 0, 8) +
        ub_response(TAACK, 3) + run * 2 + ub_ack(0, 5) + run,
        'merged': ub_post(0) * 5 + run * 3 + ub_response(TAACK, 0, 4) + ub_ack(0, 4) + run,
        'merged-too-many': ub_post(0) * 3 + run * 3 + ub_response(TAACK, 0, 31) + run,
        'refusals': ub_post(0) * 4 + run * 3 + ub_response(TAACK, 0, 0x61) + ub_response(TAACK, 1, 0x62) +
        ub_response(TAACK, 2, 0x20) + ub_response(TAACK, 3, 0x40) + run + wait(3),
        'rnr': ub_post(3) + run * 3 + (ub_response(TAACK, 0, 0x20) + wait(2)) * 6,
        'nobodys': ub_post(2, 100) + run * 3 + ub_response(TAACK, 0) + ub_response(READ_RESPONSE, 20, 0, 0, 100) +
        ub_response(READ_RESPONSE, 0, 0, 9, 1024) + ub_response(READ_RESPONSE, 0, 0, 0, 1300) + run,
        'jfs': ub_post(0, 99, 1) + ub_post(2, 9, 1) + run * 3 + ub_response(TAACK, jfs=1) + run,
        'acks': ub_post(0, 255) * 3 + run * 4 + ub_ack(0, 2) + ub_ack(1, 2, 0, 0, 9) + run + ub_ack(1, 2, 0, 7, 9) +
        ub_ack(2, 120) + ub_ack(0, -9) + ub_ack(1, 3, 0, 0, 127) + run * 2 + wait(4),
        'naks': ub_post(0, 255) * 3 + run * 4 + ub_ack(0, 1, 0x60) + run + ub_ack(0, 1, 0x60) + ub_ack(0, 2, 0x61) +
        ub_ack(0, 3, 0xa2) + ub_ack(0, 3, 0x21) + run * 2,
        'feedback': ub_post(0, 255) + run * 3 + ub_ack(4) + ub_ack(5, 1) + ub_ack(6, 1, 0, 0, 3) + ub_ack(7) + run,
        'timeouts': ub_post(0, 255) + ub_post(2, 20) + run * 2 + b''.join(wait(n) for n in (2, 3, 5, 9, 20, 90)),
        'both-ways': b''.join(ub_post(k, 30) + ub_request(UB_READ, TO_RO, 16, 2000, 0) + run for k in range(9)),
    }
    for name, steps in seeds.items():
        put('fuzz_ub_receive', name, b'\0' + steps)
    for kind in range(1, 6):
        put('fuzz_ub_receive', 'kind-%d' % kind, bytes((kind,)) + seeds['asked'] + seeds['holes'] + seeds['acks'])
    put('fuzz_ub_receive', 'passive', b'\x80' + ub_post(0) + run + seeds['writes'] + run * 2)
    raw = bytes.fromhex('02000000000102000000000208004502005c000040004011b93b0a4d00020a4d0001c00212b8004800008100'
                        '0011000022 80abcdef00000001031812340000001000000001020304000abcde0000000010deadbeef0001'
                        '02030405060708090a0b0c0d0e0f6f92c0cf'.replace(' ', ''))
    for how in (0, 8):
        put('fuzz_ub_receive', 'raw-%d' % how, b'\0' + struct.pack('<BH', how, len(raw)) + raw + run)


# Places in ops[] of fuzz_ub_wqe.c; the first byte of a UB unit
W_SEND, W_SEND_IMM, W_WRITE, W_WRITE_IMM, W_READ, W_NOTIFY, W_BE, W_ATOMIC = range(8)
OURS, THEIRS, ONE_TP, TO_ADDRESS = range(4)
RW, RO, VERBS, LOCAL = range(4)


def ub_unit(to=OURS, order=0x10, atomic=4, operands=0, odd=b''):
    return bytes((to | 0x10 | (0x80 if odd else 0), order, atomic, operands)) + odd


def ub_data(region=LOCAL, off=0, length=100):
    return struct.pack('<BHH', region, off + 16, length)


def ub_wqe(op, units, unit=None, inline=None, more=0):
    data = b'' if inline is None else bytes((inline,))
    return (bytes((1, op, len(units) | (0 if inline is None else 8) | more << 4)) + (unit or ub_unit()) +
            data + b''.join(units))


def ub_bell(op, size, how=0):
    return bytes((2, op, size, how))


def ub_wqes():
    run, good_write, good_recv = b'\7', b'\x0f', b'\x1f'
    wait = lambda n: bytes((6, n))
    answers = lambda which: bytes((4, which))
    from_peer = lambda to, eighth: bytes((5, to, eighth))
    into = lambda queue, off, data: bytes((0, queue)) + struct.pack('<HB', off, len(data)) + data
    seeds = {
        'every': b''.join(ub_wqe(op, [ub_data()], ub_unit(operands=8)) for op in range(8)) + run * 4 + wait(3),
        'lists': ub_wqe(W_WRITE, [ub_data(RW, 5, 1000), ub_data(RO, 1, 7), ub_data(LOCAL, 9, 0)]) + run * 3,
        'keys': b''.join(ub_wqe(op, [ub_data(0x80 | LOCAL)]) for op in (W_SEND, W_WRITE, W_READ)) + run * 3,
        'rights': ub_wqe(W_READ, [ub_data(RO)]) + ub_wqe(W_ATOMIC, [ub_data(RO, 0, 8)], ub_unit(operands=8)) + run * 3,
        'ranges': ub_wqe(W_SEND, [ub_data(RW, 0x1230, 999)]) + ub_wqe(W_READ, [ub_data(RW, 0x1230, 999)]) + run * 3,
        'inline': ub_wqe(W_WRITE, [], inline=40) + ub_wqe(W_SEND, [], inline=76) + ub_wqe(W_READ, [], inline=9) + run * 3,
        'atomics': b''.join(ub_wqe(W_ATOMIC, [ub_data(LOCAL, 0, n)], ub_unit(atomic=a, operands=n))
                            for a in (0, 2, 0x63, 0xe3) for n in (1, 8, 16, 64, 3)) + run * 3,
        'enables': b''.join(ub_wqe(W_BE, [ub_data(LOCAL, 0, n * 8)], ub_unit(operands=n)) for n in (8, 16, 128)) + run * 3,
        'others-tp': b''.join(ub_wqe(W_WRITE, [ub_data()], ub_unit(to)) for to in (THEIRS, ONE_TP)) + run * 3 + wait(2),
        'address': ub_wqe(W_SEND, [ub_data()], ub_unit(TO_ADDRESS)) + ub_wqe(W_WRITE, [ub_data()], ub_unit(TO_ADDRESS)) +
        run * 3,
        'odd-tp': b''.join(ub_wqe(W_WRITE, [ub_data()], ub_unit(odd=bytes((at, v))))
                           for at in (0, 1, 2, 3) for v in (0, 2, 7, 0x80, 0xff)) + run * 3,
        'odd-codes': b''.join(ub_wqe(W_WRITE, [ub_data()], ub_unit(odd=bytes((at, v))))
                              for at in (5, 6, 7, 12, 13, 14, 15) for v in (0x30, 0xff)) + run * 3,
        'orders': b''.join(ub_wqe(W_WRITE, [ub_data()], ub_unit(order=o)) for o in range(8)) + run * 4,
        'chain': ub_wqe(W_WRITE, [ub_data()], more=5) * 4 + run * 4,
        'huge': ub_wqe(W_WRITE, [ub_data()]) + into(0, 0x46, b'\x7f') + ub_bell(W_WRITE, 5) + run * 3 + wait(1),
        'send-queue': good_write + into(0, 0, b'\xff' * 128) + ub_bell(W_WRITE, 9) + run * 3,
        'receive-queue': good_recv + into(1, 0, bytes(range(128))) + from_peer(0, 50) + run * 2,
        'producer': into(1, 1, b'\xff\xff\xff\x7f') + from_peer(0, 50) + into(2, 1, b'\xff\xff\xff\x7f') +
        from_peer(1, 50) + run * 2,
        'jfr': b'\x3f' * 3 + into(2, 0, bytes(range(128))) + from_peer(1, 200) * 3 + run * 2,
        'sends': good_recv * 3 + b'\x3f' * 2 + from_peer(0, 25) + from_peer(1, 25) + from_peer(0, 255) + run * 2,
        'refused': answers(4) + good_write * 3 + run * 3 + answers(5) + b'\x2f\x4f' + run * 3,
        'not-ready': answers(1) + b'\x6f' * 2 + run * 3 + b''.join(wait(n) for n in (2, 4, 9, 20)),
        'page-fault': answers(3) + good_write * 2 + run * 3 + wait(40) + answers(0) + good_write + run * 3,
        'bells': b''.join(ub_bell(op, size) + run for op in range(12) for size in (0, 1, 33, 63)),
        'bells-of-others': b''.join(ub_bell(op, 4, how) + run for op in (0, 2, 9) for how in (2, 3, 0xf0, 0xe3)),
        'any-bell': b''.join(b'\3' + bytes(range(i, i + 8)) for i in range(0, 200, 9)) + run,
    }
    for name, steps in seeds.items():
        put('fuzz_ub_wqe', name, b'\0' + steps)


# Places in HCA_CMD_LIST, and of images that fuzz_hcr.c makes
(SW2HW_TP, MODIFY_TP, QUERY_TP, HW2SW_TP, SET_TPG, SET_TOKEN, SET_JETTY_ID, RST2RTS) = range(44, 52)
QUERY_QP, RTS2SQD, SQD2RTS, TO_ERR, ERR2RST, HW2SW_MPT = 26, 21, 23, 20, 24, 7


def ub_hcr():
    tagged, number, event = 2, 0x20, 1
    tpc, jetty, group = (lambda i, kind=kind: bytes((1, 7 + 8 * (kind + 4 * i) & 255)) for kind in (1, 2, 3))
    run = lambda which, at, how=tagged: command(which, 0, at, how)
    word = lambda off, *data: bytes((2,)) + struct.pack('<HB', off, len(data)) + bytes(data)
    attribute = lambda mask, *words: tpc(1) + word(3, mask) + b''.join(words) + run(MODIFY_TP, 1)
    seeds = {
        'tp': run(QUERY_TP, 1) + run(HW2SW_TP, 1) + run(QUERY_TP, 1) + tpc(1) + run(SW2HW_TP, 1) + run(QUERY_TP, 1),
        'tp-every-attribute': b''.join(attribute(1 << bit) + run(QUERY_TP, 1) for bit in range(8)),
        'tp-states': b''.join(attribute(1, word(4, state << 4)) for state in (3, 2, 4, 1, 0)) + run(HW2SW_TP, 1),
        'tp-fields': b''.join(tpc(6) + word(at, 0xff) + run(SW2HW_TP, 6) + run(HW2SW_TP, 6) for at in range(0, 0x60)),
        'tp-events': tpc(5) + run(SW2HW_TP, 5, tagged | event) + b'\7' * 3 + run(HW2SW_TP, 5, tagged | event) + b'\7' * 3,
        'tps': b''.join(tpc(i) + run(SW2HW_TP, i) for i in range(1, 8)) + b''.join(run(HW2SW_TP, i) for i in range(8)),
        'group': group(2) + run(SET_TPG, 3, 0) + group(1) + run(SET_TPG, 4, 0) + run(HW2SW_TP, 1) + group(0) +
        run(SET_TPG, 3, 0) + group(7) + run(SET_TPG, 3, 0),
        'group-moves': attribute(0x40, word(0x5c, 0, 0, 0, 5)) + attribute(0x40, word(0x5c, 0, 0, 0, 0)) +
        attribute(0x40, word(0x5c, 0, 0, 0, 99)),
        'tokens': b''.join(group(flags) + run(SET_TOKEN, at, 0) for flags in range(8) for at in (8, 9, 1, 63)) +
        command(HW2SW_MPT, 0, 8) + group(1) + run(SET_TOKEN, 8, 0),
        'numbers': b''.join(command(SET_JETTY_ID, 0, at, number | which << 6) for at in (0, 1, 40, 41, 255)
                            for which in range(4)) + b''.join(command(SET_JETTY_ID, 0, at) for at in (0, 40)),
        'jettys': b''.join(jetty(i) + run(RST2RTS, i) for i in range(2, 7)) +
        b''.join(run(which, 3) for which in (QUERY_QP, RTS2SQD, QUERY_QP, SQD2RTS, TO_ERR, ERR2RST, RST2RTS, ERR2RST)) +
        jetty(3) + run(RST2RTS, 3),
        'jetty-fields': b''.join(jetty(5) + word(at, 0xff) + run(RST2RTS, 5) + run(TO_ERR, 5) + run(ERR2RST, 5)
                                 for at in range(0, 0x100, 3)),
        'reset': tpc(5) + run(SW2HW_TP, 5) + bytes((5, 40, 1, 0)) + b'\7' * 4 + run(QUERY_TP, 5),
    }
    for name, steps in seeds.items():
        put('fuzz_hcr', 'ub-' + name, b'\3' + steps)


if __name__ == '__main__':
    ub_hcr()
    ub_wqes()
    ub_receive()
    sys.exit(0)
