#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf --flows: traffic of a file between the two HCAs of a process, on a real clock and over a simulated
network, where times are exact; files that are refused; benchmarks/flows-plot draws the lines.

test_flows.py SOFTHCA-PERF FLOWS-PLOT [unittest arguments]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PERF, PLOT = [os.path.abspath(word) for word in (sys.argv.pop(1), sys.argv.pop(1))]
TIMEOUT_S = 240
QUIET = '--no-huge', '--mbufs', '1024', '--seed', '1'


class Flows(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.path = os.path.join(place.name, 'flows.txt')

    def run_perf(self, text, *words, status=0):
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write(text)
        done = subprocess.run([PERF, *QUIET, '--flows', self.path, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding='utf-8', timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def lines(self, text, *words):
        return [json.loads(line) for line in self.run_perf(text, *words).stdout.splitlines()]

    def test_real_clock(self):
        """Lines come in the order of the file; every flow has its bytes."""
        for ms in 20, 500, 10000:  # on a busy machine the process may have no CPU for the whole of it
            found = self.lines('size=1000000 message=30000 op=read\n'
                               'duration=%dms rate=1 message=1K peer=0 count=2\n'
                               '# none\n'
                               'start=5ms size=100K dscp=26 peer=1\n' % ms)
            if found[1]['messages'] > 0:
                break
        self.assertEqual([(f['flow'], f['line'], f['peer'], f['op']) for f in found],
                         [(0, 1, '1', 'read'), (1, 2, '0', 'write'), (2, 2, '0', 'write'), (3, 4, '1', 'write')])
        self.assertEqual((found[0]['bytes'], found[0]['messages']), (1000000, 34))
        self.assertEqual(found[3]['bytes'], 102400)
        self.assertGreater(found[1]['messages'], 0)
        self.assertLess(found[1]['bytes'] * 8, 1.25e6 * ms)  # 1 Gb/s
        for flow in found:
            self.assertFalse(flow['failed'])
            rate = flow['rate']
            self.assertAlmostEqual(sum(rate['gbit_per_s']) * rate['step_us'] * 1e3 / 8, flow['bytes'],
                                   delta=flow['bytes'] * 1e-4)

    NETWORK = '--fabric', 'rate=10,delay=5'

    def test_simulated(self):
        """10 Gb/s: a flow of 4, one that takes what is left, and in the other direction one with the whole."""
        text = ('size=1000000 rate=4 message=4000\n'
                'start=500us size=400000 message=4000 peer=0 depth=32\n'
                'start=10ms size=4000 message=4000 rate=1\n')
        found = self.lines(text, *self.NETWORK)
        self.assertAlmostEqual(found[0]['completion_us'], 2000 + 10, delta=20)
        self.assertAlmostEqual(found[0]['gbit_per_s'], 4, delta=0.05)
        # headers: 400000 bytes are 100 frames of 4092
        self.assertAlmostEqual(found[1]['completion_us'], 330 + 10, delta=20)
        self.assertEqual(found[1]['start_us'], 500)
        self.assertAlmostEqual(found[2]['completion_us'], 13, delta=5)
        # between them the ACKs wait behind the data of the other direction
        for step in found[0]['rate']['gbit_per_s'][2:5] + found[0]['rate']['gbit_per_s'][11:19]:
            self.assertAlmostEqual(step, 4, delta=0.4)
        self.assertEqual(found, self.lines(text, *self.NETWORK))

    CROWD = '--fabric', 'rate=10,delay=5,paths=4,queue=200000,ecn=40000'

    def test_congestion(self):
        """A queue that marks: flows with an algorithm are marked and slow down, others lose frames."""
        text = 'size=1M message=16K depth=16 count=4 %s\n'
        for words, name in (((), 'dcqcn'), ((), 'swift'), (('--congestion', 'dcqcn'), 'default')):
            found = self.lines(text % ('congestion=' + name), *words, *self.CROWD)
            self.assertEqual([f['congestion'] for f in found], [name] * 4)
            self.assertEqual(sum(f['retransmissions'] for f in found), 0, found)
            if name != 'swift':
                self.assertGreater(sum(f['cnps'] for f in found), 0)
        for words in ((), ('--congestion', 'none')):
            found = self.lines(text % '', *words, *self.CROWD)
            self.assertEqual(sum(f['cnps'] for f in found), 0)
            self.assertGreater(sum(f['retransmissions'] for f in found), 0)

    def test_losses(self):
        """A queue that overflows: frames are sent again, and the line says so."""
        found = self.lines('size=2M message=20000 depth=4 count=4\n', '--ack-timeout', '10',
                           '--fabric', 'rate=10,delay=5,paths=4,queue=100000')
        self.assertGreater(sum(f['retransmissions'] for f in found), 0)
        self.assertEqual({f['bytes'] for f in found}, {2 << 20})

    def test_refused(self):
        for text, why in (('size=1M\nstart=1ms\n', ':2: neither size nor duration'),
                          ('size=1M color=red\n', ':1: "color=red": expected one of op peer start'),
                          ('', ': no flow in it'),
                          ('size=16M message=16M count=100\n', 'messages times flows need more than 1 GiB')):
            self.assertIn(why, self.run_perf(text, status=1).stderr)
        for words, why in ((('--size', '1K'), '--size: not with --flows'),
                           (('--op', 'read'), '--op: not with --flows'),
                           (('--json', 'x'), '--json: not with --flows'),
                           (('--wire', 'ub'), '--flows has RoCE only')):
            self.assertIn(why, self.run_perf('size=1\n', *words, status=2).stderr)
        done = subprocess.run([PERF, *QUIET, '--flows', self.place + '/none'], stderr=subprocess.PIPE,
                              encoding='utf-8', timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn('/none: No such file or directory', done.stderr)

    def test_plot(self):
        text = 'size=1000000 rate=4 message=4000\nsize=500000 peer=0\n'
        lines = self.run_perf(text, *self.NETWORK).stdout
        queue = {'port': 0, 'step_us': 10, 'queue': 100000, 'kmin': 20000, 'kmax': 50000,
                 'queue_bytes': [0, 10000, 90000, 30000]}
        path = os.path.join(self.place, 'run.svg')
        subprocess.run([PLOT, '-', path], input=lines + json.dumps(queue) + '\n', encoding='utf-8', check=True,
                       timeout=TIMEOUT_S)
        svg = xml.etree.ElementTree.parse(path).getroot()
        drawn = svg.findall('.//{http://www.w3.org/2000/svg}polyline')
        self.assertEqual(len(drawn), 3)
        self.assertIn('Gb/s', ''.join(svg.itertext()))
        for bad, why in (('', 'no flow'), ('x\n', 'line 1'), ('{}\n', 'line 1'), ('{"flow": 0}\n', 'line 1')):
            done = subprocess.run([PLOT, '-', path], input=bad, stderr=subprocess.PIPE, encoding='utf-8',
                                  timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(why, done.stderr)


if __name__ == '__main__':
    unittest.main()
