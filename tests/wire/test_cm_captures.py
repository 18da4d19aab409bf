#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_cm_captures.py CAPTURE...: connection management of Linux, read by tests/interop/cm/cm_mad.py. Each
message has 256 bytes and its ICRC, is made again byte for byte from the read fields, and tshark, where it is
installed, reads the same fields and reports no malformed one. This also tests the judge of captures in
tests/interop/cm."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../interop/cm'))
import cm_judge  # noqa: E402
import cm_mad  # noqa: E402

LEAST = 300


def made_again(message):
    fields = dict(message['fields'])
    head = {ours: fields[theirs] for ours, theirs in (
        ('base', 'base'), ('class', 'class'), ('version', 'version'), ('method', 'method'), ('status', 'mad_status'),
        ('modifier', 'modifier'))}
    return cm_mad.make(message['name'], fields.pop('tid'), fields.pop('private'), head, **fields)


def by_tshark(frames):
    """All in one file: it takes long to start."""
    if not shutil.which('tshark'):
        return []
    with tempfile.NamedTemporaryFile(suffix='.pcap') as file:
        cm_mad.write_pcap(file.name, frames)
        return cm_judge.compare_with_tshark(file.name)


def main():
    seen, names, bad, every = 0, set(), [], []
    for path in sys.argv[1:]:
        frames = list(cm_mad.read_pcap(path))
        every += frames
        for number, (_, data) in enumerate(frames, 1):
            message = cm_mad.open_frame(data)
            if message is None:
                continue
            where = '%s:%d: %s: ' % (os.path.basename(path), number, message['name'])
            seen += 1
            names.add(message['name'])
            if not message['icrc_good']:
                bad.append(where + 'wrong ICRC')
            if message['mad_bytes'] != cm_mad.MAD_BYTES:
                bad.append(where + '%d bytes' % message['mad_bytes'])
            elif message['name'] in cm_mad.FIELDS and made_again(message) not in data:
                bad.append(where + 'made again it differs: %s' % message['fields'])
    bad += by_tshark(every)
    if seen < LEAST:
        bad.append('%d messages' % seen)
    if not names >= set(cm_mad.FIELDS):
        bad.append('no ' + ', '.join(sorted(set(cm_mad.FIELDS) - names)))
    print('\n'.join(bad) or '%d messages' % seen)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
