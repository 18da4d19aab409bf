#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gsi_tshark.py PROGRAM: the frames of test_gsi from QP 1, read by tshark: a REQ in each, source and
destination QP 1, MADs of 256 bytes, nothing malformed."""
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
QKEY = 0x80010000
FIELDS = ['ip.ttl', 'ipv6.hlim', 'infiniband.bth.destqp', 'infiniband.bth.p_key',
          'infiniband.deth.q_key', 'infiniband.deth.srcqp', 'infiniband.mad.attributeid',
          'infiniband.mad.baseversion', 'infiniband.mad.mgmtclass', 'udp.length', '_ws.malformed',
          '_ws.expert.message']
UDP_BYTES = 8 + 12 + 8 + 256 + 4  # with BTH, DETH, MAD, ICRC
WANT = {'infiniband.bth.destqp': 1, 'infiniband.bth.p_key': 0xffff, 'infiniband.deth.q_key': QKEY,
        'infiniband.deth.srcqp': 1, 'infiniband.mad.attributeid': 0x10,
        'infiniband.mad.baseversion': 1, 'infiniband.mad.mgmtclass': 7, 'udp.length': UDP_BYTES}
EXPERT = ('', 'Illegal checksum value (0)')  # of UDP over IPv6, as all of RoCE's
FRAMES = 10  # two directions, five addresses


def capture(program, path):
    environment = dict(os.environ, SIM_PCAP=path, SIM_LAYOUT='rtc', CMOCKA_TEST_FILTER='frames')
    subprocess.run([program], env=environment, check=True, stdout=subprocess.DEVNULL)


def rows(path):
    command = ['tshark', '-n', '-r', path, '-T', 'fields'] + [x for f in FIELDS for x in ('-e', f)]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding='utf-8',
                         check=True).stdout
    return [dict(zip(FIELDS, line.split('\t'))) for line in out.splitlines()]


def complaints(row):
    for name, value in WANT.items():
        if row[name] == '' or int(row[name], 0) != value:
            yield '%s is "%s", not %#x' % (name, row[name], value)
    if row['ip.ttl'] + row['ipv6.hlim'] != '64':
        yield 'hop limit "%s%s"' % (row['ip.ttl'], row['ipv6.hlim'])
    if row['_ws.malformed'] or row['_ws.expert.message'] not in EXPERT:
        yield 'malformed "%s", expert says "%s"' % (row['_ws.malformed'], row['_ws.expert.message'])


def main():
    if not shutil.which('tshark'):
        print('SKIP: tshark is not installed (apt-get install tshark)')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'gsi.pcap')
        capture(sys.argv[1], path)
        frames = rows(path)
    bad = ['frame %d: %s' % (i + 1, text) for i, row in enumerate(frames) for text in complaints(row)]
    if len(frames) != FRAMES:
        bad.append('%d frames, not %d' % (len(frames), FRAMES))
    print('\n'.join(bad + ['%d frames, %d complaints' % (len(frames), len(bad))]))
    return 1 if bad else 0


sys.exit(main())
