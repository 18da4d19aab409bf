#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf --json: the file has the printed values, and writing it changes no result.

test_json.py SOFTHCA-PERF [unittest arguments]
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PERF = os.path.abspath(sys.argv[1])
LIMIT_S = 300  # a loaded machine is slow; a longer run counts as hung
COMMON = '--no-huge', '--op', 'write', '--size', '4096'


class Json(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'rows.json')

    def run_perf(self, *words, status=0):
        run = subprocess.run([PERF, *COMMON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             encoding='utf-8', timeout=LIMIT_S, check=False)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run

    def rows(self):
        with open(self.path, encoding='utf-8') as file:
            return json.load(file)

    def printed(self, run):
        """Size, messages, ns per message and retransmissions of the row."""
        row, = [line.split() for line in run.stdout.splitlines() if line.startswith(' ')]
        return row[0], row[1], row[5], row[6]

    def test_same(self):
        """A simulated network repeats a run: with --json it is the same."""
        words = '--fabric', 'rate=100,delay=5,loss=0.01', '--iters', '4000', '--seed', '7'
        without = self.printed(self.run_perf(*words))
        self.assertGreater(int(without[3]), 0)
        self.assertEqual(self.printed(self.run_perf(*words, '--json', self.path)), without)

    def test_printed(self):
        run = self.run_perf('--impair', 'drop=0.02', '--iters', '4000', '--seed', '7', '--json', self.path)
        root = self.rows()
        row, = root['rows']
        said = str(row['size']), str(row['msgs']), '%.1f' % row['ns_per_msg'], str(row['retransmissions'])
        self.assertEqual(self.printed(run), said)
        self.assertEqual(row['retransmissions'],
                         sum(counters.get('retransmissions', 0) for counters in row['counters']))
        self.assertIn('parser', str(row['stage_ns']))
        self.assertIs(root['interrupted'], False)

    def test_interrupted(self):
        for number in signal.SIGINT, signal.SIGTERM:
            process = subprocess.Popen([PERF, *COMMON, '--duration', '3600', '--json', self.path],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
            self.assertIn('# rc write', process.stdout.readline())
            process.send_signal(number)
            said = process.communicate(timeout=LIMIT_S)[0]
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIs(self.rows()['interrupted'], True)

    def test_unwritable(self):
        """It is refused before the run."""
        run = self.run_perf('--duration', '3600', '--json', '/nowhere/rows.json', status=1)
        self.assertEqual((run.stdout, run.stderr),
                         ('', 'softhca-perf: --json: cannot write /nowhere/rows.json: '
                          'No such file or directory\n'))

    def test_not_begun(self):
        """A file is left as it was, and no file is made."""
        words = '--json', self.path, '--histogram', '/nowhere/h', '--test', 'lat'
        self.run_perf(*words, status=1)
        self.assertFalse(os.path.exists(self.path))
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('old')
        self.run_perf(*words, status=1)
        with open(self.path, encoding='utf-8') as file:
            self.assertEqual(file.read(), 'old')

    def test_kept(self):
        """A file that is there is replaced at the end, whole."""
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('{"old": true}' + ' ' * 100000)
        self.run_perf('--iters', '10', '--json', self.path)
        self.assertNotIn('old', self.rows())

    def test_huge(self):
        run = self.run_perf('--huge', status=2)
        self.assertIn('--huge and --no-huge exclude each other', run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
