#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_ub_tshark.py FRAMES DECODE DISSECTOR ABI: a capture with every opcode of UB, read by
decode and by tshark with the dissector: the same fields with the same values in every frame, none
malformed, every ICRC good, and each of our choices named."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MADE_UP = ('ub.choice', 'ub.missing', 'ub.icrc.good', 'ub.icrc.bad', 'ub.malformed')
EXPERT = ['_ws.malformed', '_ws.expert.message', 'ub.icrc.good']


# Since 4.4 tshark loads no Lua script as root.
NOBODY = {'user': 'nobody', 'group': 'nogroup', 'extra_groups': []}


def run(*args, **options):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                          errors='replace', check=False, **options)
    if done.returncode:
        sys.exit('%s: %s%s' % (' '.join(args), done.stdout[-2000:], done.stderr))
    return done.stdout


def read_decode(decode, pcap):
    frames = []
    for line in run(decode, pcap).splitlines():
        if ' UB ' in line:
            frames.append(dict(re.findall(r' (ub\.[\w.]+)=([0-9a-f]+)', line)))
    return frames


def run_tshark(lua, *args):
    """As an ordinary user, in the folder of the script, where that user may read everything."""
    folder = os.path.dirname(lua)
    return run('tshark', *args, '-X', 'lua_script:' + lua, cwd=folder, env={**os.environ, 'HOME': folder},
               **(NOBODY if os.geteuid() == 0 else {}))


def fields_of(lua):
    """All fields the dissector registers, but those it makes up."""
    table = run_tshark(lua, '-G', 'fields')
    names = {line.split('\t')[2]: line.split('\t')[3] for line in table.splitlines()
             if line.startswith('F\t') and line.split('\t')[2].startswith('ub.')}
    return {n: kind for n, kind in names.items()
            if n not in MADE_UP and 'caqm' not in n}


def tshark(lua, pcap, names):
    # without the preference each UDP checksum of 0 on IPv6 is an error of UDP's dissector
    rows = run_tshark(lua, '-n', '-o', 'udp.ignore_ipv6_zero_checksum:TRUE', '-r', pcap, '-T', 'fields',
                      *[x for n in names for x in ('-e', n)]).splitlines()
    return [row.split('\t') + [''] * len(names) for row in rows]


def value(name, kind, text):
    return text.replace(':', '') if kind == 'FT_BYTES' else int(text, 0)


def compare(number, want, row, kinds):
    names = list(kinds)
    got = {n: value(n, kinds[n], text) for n, text in zip(names, row) if text != ''}
    for name in sorted(set(want) | set(got)):
        ours = want.get(name)
        if ours is not None and kinds.get(name) != 'FT_BYTES':
            ours = int(ours)
        if ours != got.get(name):
            yield 'frame %d: %s is %s for decode, %s for tshark' % (number, name, ours,
                                                                   got.get(name))
    malformed, expert, good = row[len(names):len(names) + 3]
    if malformed or expert or good not in ('1', 'True'):
        yield 'frame %d: malformed "%s", expert "%s", ICRC good "%s"' % (number, malformed, expert,
                                                                         good)


def choices_of(abi):
    with open(abi, encoding='utf-8') as file:
        text = file.read().split('#define HCA_UB_CHOICE_LIST(X)')[1].split('\n\n')[0]
    return set(re.findall(r'X\((\w+),', text))


def damaged(lua, pcap, copy):
    """The last byte of the first payload or header in front of the ICRC is changed."""
    with open(pcap, 'rb') as file:
        data = bytearray(file.read())
    length = int.from_bytes(data[32:36], 'little')
    data[40 + length - 5] ^= 1
    with open(copy, 'wb') as file:
        file.write(data)
    return tshark(lua, copy, EXPERT)[0][2] in ('0', 'False')


def main():
    frames, decode, dissector, abi = sys.argv[1:]
    if not shutil.which('tshark'):
        print('SKIP: tshark is not installed (apt-get install tshark)')
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        lua = shutil.copy(dissector, folder)
        os.chmod(lua, 0o644)
        pcap = os.path.join(folder, 'ub.pcap')
        made = int(run(frames, pcap))
        kinds = fields_of(lua)
        ours = read_decode(decode, pcap)
        theirs = tshark(lua, pcap, list(kinds) + EXPERT)
        named = tshark(lua, pcap, ['ub.choice'])
        seen = damaged(lua, pcap, os.path.join(folder, 'bad.pcap'))
    bad = []
    if not made == len(ours) == len(theirs):
        bad.append('%d frames made, decode has %d, tshark %d' % (made, len(ours), len(theirs)))
    for i, (want, row) in enumerate(zip(ours, theirs)):
        bad += compare(i + 1, want, row, kinds)
    names = set(re.findall(r'(?:^|,)([A-Z_]+): ', ','.join(row[0] for row in named)))
    if names != choices_of(abi):
        bad.append('choices: %s' % sorted(names ^ choices_of(abi)))
    missing = set(kinds) - {n for f in ours for n in f} - {'ub.security'}
    if missing:
        bad.append('in no frame: %s' % sorted(missing))
    if not seen:
        bad.append('tshark takes a wrong ICRC')
    for line in bad[:40]:
        print(line)
    print('%d frames, %d fields, %d choices, %d complaints' % (made, len(kinds), len(names),
                                                               len(bad)))
    return 1 if bad or not made else 0


sys.exit(main())
