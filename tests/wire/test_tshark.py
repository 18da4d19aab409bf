#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_tshark.py FRAMES DECODE CAPTURE...: frames of ours, read by another program. tshark must find no
malformed field and no expert warning, and see the opcodes, PSNs and ICRCs that were sent. For captures of
others it prints the PSNs and ICRCs that decode prints."""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# By opcode, as tshark names them.
NAMES = [
    'SEND First', 'SEND Middle', 'SEND Last', 'SEND Last with Immediate', 'SEND Only',
    'SEND Only with Immediate', 'RDMA WRITE First', 'RDMA WRITE Middle', 'RDMA WRITE Last',
    'RDMA WRITE Last with Immediate', 'RDMA WRITE Only', 'RDMA WRITE Only with Immediate',
    'RDMA READ Request', 'RDMA READ response First', 'RDMA READ response Middle',
    'RDMA READ response Last', 'RDMA READ response Only', 'Acknowledge', 'ATOMIC Acknowledge',
    'CmpSwap', 'FetchAdd',
]
FIELDS = ['frame.number', 'frame.len', 'infiniband.bth.opcode', 'infiniband.bth.psn',
          'infiniband.invariant.crc', 'ip.checksum.status', '_ws.malformed',
          '_ws.expert.message']


def tshark(*args):
    run = subprocess.run(['tshark', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         encoding='utf-8', errors='replace')
    if run.returncode:
        sys.exit('tshark %s: %s' % (' '.join(args), run.stderr))
    return run.stdout


@functools.lru_cache
def read_options():
    """tshark guesses the protocol of a payload from its first bytes (RPC over RDMA, iSER, SDP ...). On
    payloads of a few arbitrary bytes the guess runs past the end and is reported as malformed,
    which says nothing about the frame: 4.0 takes a SEND ONLY of 0 to 8 bytes for RPC over RDMA.
    So the protocols that are guessed are off; but for Ethernet, which the frame itself needs."""
    options = ['-n', '-o', 'ip.check_checksum:TRUE']
    for line in tshark('-G', 'heuristic-decodes').splitlines():
        table, protocol = line.split('\t')[:2]
        if table == 'infiniband.payload' and protocol != 'ethertype':
            options += ['--disable-protocol', protocol]
    return options


def normal(name):
    return ' '.join(name.lower().split())


def opcode_names(pcap, options):
    names = []
    for line in tshark('-r', pcap, '-V', '-O', 'infiniband', *options).splitlines():
        if 'Opcode: ' in line:
            names.append(line.split(' - ', 1)[1].rsplit(' (', 1)[0])
    return names


def judge(sent, pcap):
    options = read_options()
    rows = tshark('-r', pcap, '-T', 'fields', *options,
                  *[x for f in FIELDS for x in ('-e', f)]).splitlines()
    names = opcode_names(pcap, options)
    bad = []
    if not len(rows) == len(names) == len(sent):
        bad.append('%d frames sent, tshark sees %d and %d opcodes' % (len(sent), len(rows),
                                                                      len(names)))
    for want, row, name in zip(sent, rows, names):
        opcode, psn, length, icrc, payload = want
        got = row.split('\t') + [''] * len(FIELDS)
        what = 'frame %s, %s, %d bytes of payload: ' % (got[0], NAMES[opcode], payload)
        if got[6] or got[7]:
            bad.append(what + 'malformed "%s", expert says "%s"' % (got[6], got[7]))
        if (int(got[1]), int(got[2] or -1), int(got[3] or -1)) != (length, opcode, psn):
            bad.append(what + 'length, opcode, PSN are %s' % got[1:4])
        if not got[4] or int(got[4], 16) != icrc:
            bad.append(what + 'ICRC %s, not %#x' % (got[4], icrc))
        if got[5] not in ('1', 'Good'):
            bad.append(what + 'IP checksum status %s' % got[5])
        if normal(name) != normal(NAMES[opcode]):
            bad.append(what + 'is called "%s"' % name)
    return bad


def joined(captures, path):
    """All captures in one file, which have the same header: tshark takes longer to start than to read them."""
    with open(path, 'wb') as out:
        for capture in captures:
            with open(capture, 'rb') as file:
                header = file.read(24)
                if out.tell() == 0:
                    first = header
                    out.write(header)
                if header != first:
                    sys.exit('%s: the header of a capture differs' % capture)
                out.write(file.read())


def judge_decode(decode, captures, path):
    """decode and tshark print the same numbers."""
    ours = ''.join(subprocess.run([decode, capture], stdout=subprocess.PIPE, encoding='utf-8', check=True).stdout
                   for capture in captures)
    ours = [(int(psn, 16), int(icrc, 16)) for psn, icrc in re.findall(r' psn (\w+) .* icrc (\w+) ', ours)]
    joined(captures, path)
    rows = tshark('-r', path, '-T', 'fields', *read_options(), '-e', 'infiniband.bth.psn',
                  '-e', 'infiniband.invariant.crc').splitlines()
    theirs = [(int(psn), int(icrc, 16)) for psn, icrc in (row.split('\t') for row in rows)]
    if ours and ours == theirs:
        return []
    return ['frame %d of the captures: decode prints PSN and ICRC %s, tshark %s' % (at, pair, other)
            for at, (pair, other) in enumerate(zip(ours, theirs), 1) if pair != other] or [
                'captures: %d and %d frames' % (len(ours), len(theirs))]


def main():
    if not shutil.which('tshark'):
        print('SKIP: tshark is not installed (apt-get install tshark)')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        pcap = os.path.join(folder, 'frames.pcap')
        out = subprocess.run([sys.argv[1], pcap], stdout=subprocess.PIPE, encoding='utf-8',
                             check=True).stdout
        sent = [tuple(int(x) for x in line.split()) for line in out.splitlines()]
        bad = judge(sent, pcap) + judge_decode(sys.argv[2], sys.argv[3:], os.path.join(folder, 'captures.pcap'))
    for line in bad[:40]:
        print(line)
    print('%d frames, %d complaints' % (len(sent), len(bad)))
    return 1 if bad or not sent else 0


sys.exit(main())
