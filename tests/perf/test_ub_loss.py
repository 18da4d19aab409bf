#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_ub_loss.py PERF [SEED...]: goodput of UB's rules and of RoCE's go-back-N over the same network with
losses, writes of 1 MiB over one channel, in simulated time, and the packets that TIME sends again; latency of
writes of 4 KiB that are due at 30 % of the rate; then eight paths, with spray or a channel for each. Prints
the tables; the bars are shares of the goodput without loss. The median of the seeds counts. With one seed
only the rows with a bar, or compared with one, are run."""
import re
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

SPARSE = {'TIME': LOSSES, 'MARK': LOSSES, 'RoCE': LOSSES[:3]}  # of one seed

# TIME sends again no more than the network lost.
AGAIN = 1.05
# Gb/s and the most that p99.9 of TIME may be, of that without loss
LOAD, SLOWER = '30', 2.5


def row(seed, fabric, *args):
    """The numbers of the row, and how many packets with data the network has lost."""
    done = subprocess.run([sys.argv[1], '--no-huge', '--op', 'write', '--seed', seed, '--fabric', fabric, *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(args), done.stdout))
    numbers = [line for line in done.stdout.splitlines() if line.startswith(' ')][0].split()
    return numbers, int(re.findall(r'lost \d+ frames, (\d+) of them data', done.stdout)[0])


def median(fabric, *args):
    """Gb/s; packets sent again and lost, of all seeds."""
    rows = [row(seed, fabric, '--size', '1048576', '--iters', '192', *args) for seed in SEEDS]
    return (statistics.median(float(numbers[3]) for numbers, _ in rows),
            sum(int(numbers[6]) for numbers, _ in rows), sum(lost for _, lost in rows))


def tail(fabric, *args):
    """p99.9 in us"""
    return statistics.median(float(row(seed, fabric, '--test', 'lat', '--size', '4096', '--load', LOAD, '--iters',
                                       '50000', *args)[0][8]) for seed in SEEDS)


def losses():
    print('%-6s' % '', *('%21s' % loss for loss in LOSSES))
    at_loss = {}
    for name, (args, bars) in SENDERS.items():
        cells, whole = [], None
        for loss, bar in zip(LOSSES, bars):
            if len(SEEDS) == 1 and loss not in SPARSE.get(name, ()):
                continue
            rate, again, lost = median(ONE_PATH + loss, *args)
            whole = whole or rate
            at_loss[name, loss] = rate
            cells.append('%5.1f %% %6u (%4u)' % (100 * rate / whole, again, lost))
            if bar is not None and rate < bar * whole:
                yield '%s at %s: %.1f of %.1f Gb/s' % (name, loss, rate, whole)
            if name == 'TIME' and again > AGAIN * lost:
                yield '%s at %s: %u packets sent again, %u lost' % (name, loss, again, lost)
            if loss == '0' and again != 0:
                yield '%s without loss: %u packets sent again' % (name, again)
        if cells:
            print('%-6s' % name, *cells, flush=True)
    if at_loss['TIME', '1e-3'] <= at_loss['RoCE', '1e-3']:
        yield 'no better than go-back-N'


def latencies():
    print('p99.9 of 4 KiB at %s Gb/s, us: without loss, with 1e-3' % LOAD)
    for name in ('TIME', 'MARK', 'RoCE') if len(SEEDS) > 1 else ('TIME',):
        calm, lossy = [tail(ONE_PATH + loss, *SENDERS[name][0]) for loss in ('0', '1e-3')]
        print('%-6s %8.1f %8.1f, ratio %.2f' % (name, calm, lossy, lossy / calm), flush=True)
        if name == 'TIME' and lossy > SLOWER * calm:
            yield 'latency of TIME: %.1f us, without loss %.1f us' % (lossy, calm)


def paths():
    spray = ('--wire', 'ub', '--tps', '1', '--spray', '8', '--reorder-us', '25')
    rate, again, _ = median(EIGHT_PATHS, *spray)
    lossy, resent, lost = median(EIGHT_PATHS + ',loss=1e-3', *spray)
    one_bad, bad_resent, bad_lost = median(EIGHT_PATHS + ',loss0=0.1', *spray)
    print('8 paths, 20 us apart, spray: %.1f Gb/s, %u again; loss 1e-3: %.1f, %u (%u); one path 0.1: '
          '%.1f, %u (%u)' % (rate, again, lossy, resent, lost, one_bad, bad_resent, bad_lost))
    if rate < 95 or lossy < 0.95 * rate or one_bad < 0.8 * rate:
        yield '8 paths: too little arrives'
    if again != 0:
        yield '8 paths: %u packets sent again that were only late' % again
    group = [median(EIGHT_PATHS + more, '--wire', 'ub', '--tps', '8') for more in ('', ',loss=1e-3', ',loss0=0.1')]
    print('8 channels instead: %.1f Gb/s, %u again (%u); loss 1e-3: %.1f, %u (%u); one path 0.1: %.1f, %u (%u)' % (
        group[0] + group[1] + group[2]))
    if group[0][0] < 95 or group[0][1] != 0 or group[1][0] < 0.95 * group[0][0]:
        yield '8 channels: each does not take a path of its own'


bad = list(losses()) + list(latencies()) + list(paths())
print('\n'.join(bad))
sys.exit(1 if bad else 0)
