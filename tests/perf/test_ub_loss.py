#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_ub_loss.py PERF [SEED...]: goodput of UB's rules and of RoCE's go-back-N over the same network
with losses, writes of 1 MiB over one channel, in simulated time; then eight paths with spray. Prints the
table; the bars are shares of the goodput without loss. The median of the seeds counts."""
import statistics
import subprocess
import sys

SEEDS = sys.argv[2:] or ['1']
LOSSES = ('0', '1e-4', '1e-3', '1e-2')
ONE_PATH = 'rate=100,delay=50,loss='
EIGHT_PATHS = 'rate=12.5,delay=50,paths=8,skew=20'
# Senders, and the least share of the goodput without loss for each loss; None: only a figure.
SENDERS = {
    'TIME': (('--wire', 'ub', '--tps', '1', '--rule', 'time'), (1, 0.98, 0.97, 0.90)),
    'MARK': (('--wire', 'ub', '--tps', '1', '--rule', 'mark'), (1, 0.97, 0.95, 0.85)),
    'HIGH': (('--wire', 'ub', '--tps', '1', '--rule', 'high'), (1, None, None, None)),
    'NONE': (('--wire', 'ub', '--tps', '1', '--rule', 'none'), (1, None, None, None)),
    'NAK': (('--wire', 'ub', '--tps', '1', '--rule', 'nak'), (1, None, None, None)),
    'RoCE': (('--wire', 'roce'), (1, None, None, None)),
}


def run(seed, fabric, *args):
    """Gb/s and packets sent again."""
    done = subprocess.run(
        [sys.argv[1], '--no-huge', '--op', 'write', '--size', '1048576', '--iters', '192', '--seed',
         seed, '--fabric', fabric, *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(args), done.stdout))
    row = [line for line in done.stdout.splitlines() if line.startswith(' ')][0].split()
    return float(row[3]), int(row[6])


def median(fabric, *args):
    rows = [run(seed, fabric, *args) for seed in SEEDS]
    return statistics.median(row[0] for row in rows), sum(row[1] for row in rows)


def losses():
    print('%-6s' % '', *('%14s' % loss for loss in LOSSES))
    at_loss = {}
    for name, (args, bars) in SENDERS.items():
        cells, whole = [], None
        for loss, bar in zip(LOSSES, bars):
            rate, again = median(ONE_PATH + loss, *args)
            whole = whole or rate
            at_loss[name, loss] = rate
            cells.append('%5.1f %% %6u' % (100 * rate / whole, again))
            if bar is not None and rate < bar * whole:
                yield '%s at %s: %.1f of %.1f Gb/s' % (name, loss, rate, whole)
            if loss == '0' and again != 0:
                yield '%s without loss: %u packets sent again' % (name, again)
        print('%-6s' % name, *cells, flush=True)
    if at_loss['TIME', '1e-3'] <= at_loss['RoCE', '1e-3']:
        yield 'no better than go-back-N'


def paths():
    spray = ('--wire', 'ub', '--tps', '1', '--spray', '8', '--reorder-us', '25')
    rate, again = median(EIGHT_PATHS, *spray)
    lossy, resent = median(EIGHT_PATHS + ',loss=1e-3', *spray)
    one_bad, bad_resent = median(EIGHT_PATHS + ',loss0=0.1', *spray)
    print('8 paths, 20 us apart, spray: %.1f Gb/s, %u again; loss 1e-3: %.1f, %u; one path 0.1: '
          '%.1f, %u' % (rate, again, lossy, resent, one_bad, bad_resent))
    if rate < 95 or lossy < 0.95 * rate or one_bad < 0.8 * rate:
        yield '8 paths: too little arrives'
    if again != 0:
        yield '8 paths: %u packets sent again that were only late' % again


bad = list(losses()) + list(paths())
print('\n'.join(bad))
sys.exit(1 if bad else 0)
