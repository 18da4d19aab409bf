#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_fabric.py PERF: over a fabric time is simulated: two runs have the same row, the
latency is that of the network, and losses cost what go-back-N costs. Wrong texts are refused."""
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], '--no-huge', *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8')


def row(*args):
    done = run('--seed', '7', *args)
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(args), done.stdout))
    return [line for line in done.stdout.splitlines() if line.startswith(' ')][0].split()


def goodput(loss):
    return row('--op', 'write', '--size', '1048576', '--depth', '4', '--post-list', '1', '--iters',
               '48', '--fabric', 'rate=100,delay=50,loss=' + loss)


def complaints():
    first = goodput('1e-3')
    if first != goodput('1e-3'):
        yield 'the same seed has another row'
    clean = goodput('0')
    if not 94 < float(clean[3]) < 98.1 or clean[6] != '0':
        yield 'without loss: %s' % clean
    if not 20 < float(first[3]) < 92 or first[6] == '0':
        yield 'with loss: %s' % first
    # one way: 50 us, 8 bytes on the wire, and the ticks of the clock
    lat = row('--test', 'lat', '--op', 'write', '--size', '8', '--iters', '200', '--fabric',
              'rate=100,delay=50')
    if not 50.0 < float(lat[4]) < 52.0:
        yield 'latency: %s' % lat
    for text in ('delay=5', 'rate=1,loss=3', 'rate=1,layers=2'):
        refused = run('--fabric', text)
        if refused.returncode != 2 or 'expected' not in refused.stdout:
            yield '%s: %s' % (text, refused.stdout)
    for words in (('--executor', 'threads'), ('--service', 'uc')):
        refused = run('--fabric', 'rate=1,loss=0.1', '--op', 'send', *words)
        if refused.returncode != 2 or '--fabric' not in refused.stdout:
            yield '%s: %s' % (words, refused.stdout)


bad = list(complaints())
print('\n'.join(bad))
sys.exit(1 if bad else 0)
