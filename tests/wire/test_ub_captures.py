#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames of our HCAs, also over links that lose and damage them, keep the rules of UB's wire.

test_ub_captures.py sim PROGRAM [FILTER...]     the tests of a program of tests/sim, or all but those
                                                whose filter begins with a minus
test_ub_captures.py perf SOFTHCA-PERF quick|long|all

Every capture goes through a pipe and is judged by ub_check.py, which uses no code of the device."""
import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import tempfile

import ub_check

MAGIC = b'\x4d\x3c\xb2\xa1'     # begins a classic capture with times in ns
PIPE_BYTES = 1 << 20
SHOWN = 10
BAD_LINK = 'drop=0.02,dup=0.02,reorder=0.02,corrupt=0.01,truncate=0.01'
LOSSY = 'rate=100,delay=20,loss=3e-3'
EIGHT_PATHS = 'rate=12.5,delay=10,paths=8,skew=20,loss=3e-3'
ATOMICS = ('atomic-fa', 'atomic-cas', 'swap')
RULES = ('nak', 'none', 'high', 'mark', 'time')
OPERATIONS = ('write', 'read', 'send', 'notify') + ATOMICS


class Judge:
    """Takes the bytes of any number of captures, one behind the other."""

    def __init__(self, window, bare):
        self.form = (window, False, bare)
        self.rest, self.checker = b'', None
        self.captures = self.frames = 0
        self.bad = []

    def feed(self, data):
        buf, at = self.rest + data, 0
        while len(buf) - at >= 24:
            if buf[at:at + 4] == MAGIC:
                self.checker, at = ub_check.Checker(*self.form), at + 24
                self.captures += 1
                continue
            size, = struct.unpack_from('<I', buf, at + 8)
            if len(buf) - at < 16 + size:
                break
            self.take(buf[at + 16:at + 16 + size])
            at += 16 + size
        self.rest = buf[at:]

    def take(self, frame):
        before = self.checker.frames
        try:
            self.checker.take(frame)
        except ub_check.Wrong as wrong:
            self.bad.append('capture %d, frame %d: %s' % (self.captures, self.checker.frames, wrong))
        self.frames += self.checker.frames - before


def judged(command, window=2048, bare=False, **environment):
    """Runs a command in which PIPE stands for the capture, or whose SIM_PCAP is one. True: all well."""
    judge = Judge(window, bare)
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, 'pipe')
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)     # it has a reader and a writer all the time
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        process = subprocess.Popen([path if word == 'PIPE' else word for word in command],
                                   env=dict(os.environ, SIM_PCAP=path, **environment),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = b''
        while True:
            ended = process.poll() is not None
            ready = select.select([pipe, process.stdout], [], [], 0 if ended else 0.2)[0]
            if process.stdout in ready:
                said += os.read(process.stdout.fileno(), 1 << 16)
            if pipe in ready:
                judge.feed(os.read(pipe, PIPE_BYTES))
            elif ended:
                break
        said += process.stdout.read()
        os.close(pipe)
    for line in judge.bad[:SHOWN]:
        print(line)
    print('%d captures, %d frames, %d complaints' % (judge.captures, judge.frames, len(judge.bad)))
    if process.returncode != 0:
        print('exit status %d:\n%s' % (process.returncode, said.decode(errors='replace')[-4000:]))
    return process.returncode == 0 and judge.frames > 0 and not judge.bad and not judge.rest


def sim(program, *filters):
    for word in filters or ('',):
        skip = word.startswith('-')
        print('%s %s:' % (os.path.basename(program), word), end=' ', flush=True)
        yield judged([program], bare=word == 'bare',
                     **{'CMOCKA_%s_FILTER' % ('SKIP' if skip else 'TEST'): word.lstrip('-') or '*'})


def quick_runs():
    """Bad links, one of them with threads; losses of a network."""
    yield ('--op', 'write', '--size', '20001', '--iters', '128', '--tps', '2', '--impair', BAD_LINK)
    yield ('--op', 'send', '--size', '5001', '--iters', '64', '--ip', '6', '--vlan', '7', '--mtu', '1024',
           '--layout', 'full', '--impair', BAD_LINK)
    yield ('--op', 'read', '--size', '65536', '--iters', '64', '--tps', '1', '--spray', '8',
           '--reorder-us', '25', '--fabric', EIGHT_PATHS)


def good_link(op, ip, mtu):
    return ('--op', op, '--ip', ip, '--mtu', mtu, '--iters', '64', *(() if op in ATOMICS else ('--size', '20001')))


def with_rule(rule, *words):
    return ('--op', 'write', '--size', '262144', '--iters', '16', '--depth', '16', '--tps', '1', '--rule', rule, *words)


def long_runs():
    """Every rule on a link that loses; atomics with threads."""
    for rule in RULES:
        yield with_rule(rule, '--fabric', LOSSY)
    yield ('--op', 'atomic-fa', '--iters', '64', '--impair', BAD_LINK, '--layout', 'txrx')


def all_runs():
    """Every operation on a good link, with each IP version and MTU; rules also on a link that does worse."""
    for op in OPERATIONS:
        for ip in '4', '6':
            for mtu in '1024', '4096':
                yield good_link(op, ip, mtu)
    for rule in RULES:
        yield with_rule(rule, '--fabric', LOSSY)
        yield with_rule(rule, '--impair', BAD_LINK)
        yield ('--op', 'notify', '--size', '20001', '--iters', '64', '--rule', rule, '--fabric', LOSSY)


def perf(program, which):
    for words in {'quick': quick_runs, 'long': long_runs, 'all': all_runs}[which]():
        print(' '.join(words), end=': ', flush=True)
        yield judged([program, '--wire', 'ub', '--no-huge', '--seed', '1', '--mbufs', '1024', '--verify',
                      '--pcap', 'PIPE', *words], window=1024)


sys.exit(0 if all(list({'sim': sim, 'perf': perf}[sys.argv[1]](*sys.argv[2:]))) else 1)
