#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_fabric.py PERF: over a fabric time is simulated: two runs have the same row, the latency is that of
the network, also under load, and losses cost as much as go-back-N; the losses of the network are reported.
Wrong texts are refused."""
import re
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], '--no-huge', *args], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8')


def text(*args):
    done = run('--seed', '7', *args)
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(args), done.stdout))
    return done.stdout


def row_of(said):
    return [line for line in said.splitlines() if line.startswith(' ')][0].split()


def row(*args):
    return row_of(text(*args))


def goodput(loss):
    return row('--op', 'write', '--size', '1048576', '--depth', '4', '--post-list', '1', '--iters',
               '48', '--fabric', 'rate=100,delay=50,loss=' + loss)


def loaded(wire, load, loss):
    return text('--wire', wire, '--load', load, '--test', 'lat', '--op', 'write', '--size', '4096', '--iters', '3000',
                '--fabric', 'rate=100,delay=50,loss=' + loss)


def under_load():
    """A round trip has 31 messages at a time, 3 us apart; at more than the network's rate they wait."""
    said = loaded('ub', '10', '0')
    if 'lost 0 frames, 0 of them data, and 0 in full queues; 0 were sent again' not in said:
        yield 'without loss: %s' % said
    calm = row_of(said)
    if not 100.5 < float(calm[2]) < 103 or float(calm[3]) > 106:
        yield 'latency at 10 Gb/s: %s' % calm
    full = row_of(loaded('ub', '200', '0'))
    if not 500 < float(full[3]) < 900 or not 150 < float(full[4]) < 500:
        yield 'latency at twice the rate: %s' % full
    for wire in 'roce', 'ub':
        said = loaded(wire, '10', '1e-2')
        lost, data, again = [int(n) for n in re.findall(r'lost (\d+) frames, (\d+) of .* (\d+) were sent', said)[0]]
        lossy = row_of(said)
        if not 0 < data < lost or again != int(lossy[9]) or again < data:
            yield 'what was lost: %s' % said
        if not 190 < float(lossy[3]) or not 100.5 < float(lossy[2]) < 103:
            yield 'latency at 10 Gb/s with losses: %s' % lossy
    for words in (('--fabric', 'rate=1'), ('--test', 'lat'), ('--fabric', 'rate=1', '--test', 'lat', '--op', 'send'),
                  ('--fabric', 'rate=1', '--test', 'lat', '--op', 'read', '--events')):
        refused = run('--load', '1', *words)
        if refused.returncode != 2 or '--load' not in refused.stdout:
            yield '--load %s: %s' % (words, refused.stdout)


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
    yield from under_load()
    for bad_text in ('delay=5', 'rate=1,loss=3', 'rate=1,layers=2'):
        refused = run('--fabric', bad_text)
        if refused.returncode != 2 or 'expected' not in refused.stdout:
            yield '%s: %s' % (bad_text, refused.stdout)
    for words in (('--executor', 'threads'), ('--service', 'uc')):
        refused = run('--fabric', 'rate=1,loss=0.1', '--op', 'send', *words)
        if refused.returncode != 2 or '--fabric' not in refused.stdout:
            yield '%s: %s' % (words, refused.stdout)


bad = list(complaints())
print('\n'.join(bad))
sys.exit(1 if bad else 0)
