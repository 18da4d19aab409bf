#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf's command line: letters as perftest has them, and complaints in the user's own words.

test_options.py SOFTHCA-PERF [unittest arguments]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PERF = os.path.abspath(sys.argv[1])
REFUSED = (
    ('-s x', '-s: not a number: x'),
    ('--size x', '--size: not a number: x'),
    ('-n 5 -D 3', '-D and -n exclude each other'),
    ('--iters 5 -D 3', '-D and --iters exclude each other'),
    ('-x 1', '-x: with --server or --client only'),
    ('-p 7', '-p: with --server or --client only'),
    ('-bq 2', '-b: with --server or --client only'),
    ('-m 1500', '-m: 1500 is none of 256, 512, 1024, 2048, 4096'),
    ('-c UD -s 9000', '-c ud: a datagram has at most the MTU, 4096 bytes'),
    ('-c DC', '-c: there is no "DC": rc, uc, ud or xrc'),
    ('-s', '-s needs a value'),
    ('--size', '--size needs a value'),
    ('--verify=1', '--verify takes no value'),
    ('-H', '-H is not taken: --histogram FILE writes the distribution of latencies'),
    ('-r 512', '-r is not taken: there are as many receives as --depth says'),
    ('--tx-depth=4', '--tx-depth is not taken: it is --depth here'),
    ('--report_gbits', '--report_gbits is not taken: figures are in Gb/s; leave it out'),
    ('-Z', 'there is no option -Z'),
    ('--port-b 3', 'there is no option --port-b'),
    ('192.0.2.1', 'unexpected argument: 192.0.2.1; a server is named by --client 192.0.2.1'),
    ('--impair foo=1', '--impair: impairment "foo=1": expected drop,'),
    ('--service uc --op flush', '--service uc: --op send or write only, not flush'),
    ('--service ud --op atomic-write', '--service ud: datagrams have --op send only, not atomic-write'),
    ('--wire ub --op flush', '--op flush: with --wire roce only, --service rc or xrc'),
    ('--op flush --depth 20000', '--depth: 20000; --op flush has two requests per message: at most 16384'),
    ('--op atomic-write --size 16', '--size: 16; atomics have 8 bytes, leave --size out'),
    ('--op read --inline 64', '--inline: with --op write, send, atomic-write or flush only'),
    ('--huge --no-huge', '--huge and --no-huge exclude each other'),
)


def run_perf(*words, program=PERF):
    return subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding='utf-8', timeout=300, check=False)


class Options(unittest.TestCase):
    def test_refused(self):
        for words, complaint in REFUSED:
            run = run_perf(*words.split())
            self.assertEqual((run.returncode, run.stdout), (2, ''), words)
            self.assertTrue(run.stderr.startswith('softhca-perf: ' + complaint), run.stderr)
            self.assertEqual(run.stderr.count('\n'), 1, run.stderr)

    def test_taken(self):
        """Letters have the meaning of perftest: -n counts the messages of each QP."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'rows.json')
            run = run_perf('--no-huge', *'-s 4096 -n 64 -q 2 -t 16 -l 8 -Q 4 -m 1024 -I 0 -u 17 -c UC'.split(),
                           '--json', path)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            with open(path, encoding='utf-8') as file:
                row, = json.load(file)['rows']
        want = {'size': 4096, 'msgs': 128, 'qps': 2, 'depth': 16, 'post_list': 8, 'mtu': 1024, 'service': 'uc'}
        self.assertEqual({name: row[name] for name in want}, want)

    def test_last_signalled(self):
        """The last request of a pass has a completion, whatever --signal-every and --post-list are."""
        for iters, every, group, sent in (100, 16, 8, 112), (100, 12, 8, 120), (7, 5, 3, 15), (300, 16, 8, 304):
            run = run_perf('--no-huge', *('--mbufs 1024 --size 64 --verify --iters %d --signal-every %d --post-list %d' %
                                          (iters, every, group)).split())
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertRegex(run.stdout, r'(?m)^ 64 +%d ' % sent)

    def test_all(self):
        """Every letter of perftest is taken, or refused by a sentence of its own."""
        if shutil.which('ib_write_bw') is None:
            self.skipTest('perftest is not installed')
        letters = set()
        for program in 'ib_write_bw', 'ib_send_bw', 'ib_read_lat', 'ib_atomic_bw':
            letters.update(re.findall(r'^  -(\w), --', run_perf('--help', program=program).stdout, re.M))
        self.assertLess({'s', 'n', 'q', 'x', 'D', 'd', 'p', 'm', 't'}, letters)
        ours = set(re.findall(r'^  -(\w), --', run_perf('--help').stdout, re.M))
        for letter in letters - ours:
            run = run_perf('-' + letter)
            self.assertEqual(run.returncode, 2)
            self.assertTrue(run.stderr.startswith('softhca-perf: -%s is not taken: ' % letter), run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
