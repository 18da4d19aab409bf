#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latency distributions and series of softhca-perf, and the pictures that softhca-plot makes of them.

test_plot.py SOFTHCA-PERF SOFTHCA-PLOT [unittest arguments]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PERF, PLOT = [os.path.abspath(word) for word in sys.argv[1:3]]
PLAIN = '--no-huge', '--seed', '7', '--mbufs', '1024'
SIMULATED = PLAIN + ('--fabric', 'rate=10,delay=5,loss=0.001')
LATENCY = SIMULATED + ('--test', 'lat', '--size', '64', '--iters', '3000')
HAVE = subprocess.run([PLOT, '--check'], stderr=subprocess.DEVNULL, check=False).returncode == 0

# Colours of a picture, and of each quarter of it
COLOURS = '''
import sys
from matplotlib import image
picture = (image.imread(sys.argv[1])[:, :, :3] * 15).astype(int)
lines, columns = picture.shape[0] // 2, picture.shape[1] // 2
for part in (picture, picture[:lines, :columns], picture[:lines, columns:], picture[lines:, :columns]):
    print(len({tuple(colour) for colour in part.reshape(-1, 3)}))
'''


def run(*words, status=0, **options):
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                            timeout=300, check=False, **options)
    if result.returncode != status:
        raise AssertionError('%s ended with %d:\n%s' % (' '.join(words), result.returncode, result.stdout))
    return result.stdout


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def rows(self, *words):
        path = self.path('rows.json')
        self.said = run(PERF, *words, '--json', path)
        with open(path, encoding='utf-8') as file:
            return json.load(file)['rows']


class Numbers(Case):
    def test_histogram(self):
        """The text, the JSON and the table have the same figures."""
        path = self.path('read.hgrm')
        row, = self.rows(*LATENCY, '--op', 'read', '--histogram', path)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        lines = [line.split() for line in text.splitlines() if re.match(r' +\d', line)]
        self.assertRegex(text, r'(?m)^ +Value +Percentile +TotalCount 1/\(1-Percentile\)\n\n +')
        told = row['histogram']
        self.assertEqual([line[0] for line in lines], ['%.3f' % us for us in told['us']])
        self.assertEqual([int(line[2]) for line in lines], told['count'])
        self.assertEqual((lines[0][1], lines[-1][1:]), ('0.000000', ['1.000000', '3000', 'inf']))
        self.assertEqual((told['us'][0], told['us'][-1]), (row['lat_us']['min'], row['lat_us']['max']))
        self.assertEqual(told['us'], sorted(told['us']))
        for level, count in zip(told['percentile'], told['count']):
            self.assertGreaterEqual(count, level * 3000 - 1e-6)
        half = told['percentile'].index(min(told['percentile'], key=lambda level: abs(level - 0.5)))
        self.assertAlmostEqual(told['us'][half], row['lat_us']['p50'], delta=0.01 * row['lat_us']['p50'])
        self.assertRegex(text, r'#\[Mean    = +%.3f, StdDeviation' % row['lat_us']['avg'])
        self.assertRegex(text, r'#\[Max     = +%.3f, Total count    = +3000\]' % row['lat_us']['max'])

    def test_same(self):
        """Neither of them changes the results."""
        said = run(PERF, *LATENCY)
        self.assertEqual(run(PERF, *LATENCY, '--histogram', self.path('h')), said)
        self.rows(*LATENCY)
        self.assertEqual(self.said, said)

    def test_series(self):
        row, = self.rows(*SIMULATED, '--size', '65536', '--duration', '0.15')
        seconds, rate = row['series']['seconds'], row['series']['mmsg_per_s']
        self.assertGreater(len(seconds), 10)
        self.assertEqual(seconds, sorted(seconds))
        messages = sum(r * (end - begin) for r, begin, end in zip(rate, [0] + seconds, seconds)) * 1e6
        share = seconds[-1] / row['seconds']
        self.assertGreater(share, 0.8)
        self.assertAlmostEqual(messages, row['msgs'] * share, delta=0.1 * row['msgs'])
        self.assertLessEqual(max(rate), row['peak_gbit_per_s'] * 1e3 / 8 / 65536 * 1.001)

    def test_refused(self):
        said = run(PERF, '--histogram', self.path('h'), status=2)
        self.assertIn('--histogram: with --test lat only', said)
        said = run(PERF, *LATENCY, '--histogram', '/nowhere/h', status=1)
        self.assertIn('softhca-perf: --histogram: cannot write /nowhere/h', said)
        self.assertNotIn('# rc', said)

    def test_no_plot(self):
        """A missing tool is named before the measurement."""
        program = shutil.copy(PERF, self.path('softhca-perf'))
        with open(self.path('softhca-plot'), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\necho softhca-plot: it needs matplotlib >&2\nexit 1\n')
        os.chmod(self.path('softhca-plot'), 0o755)
        said = run(program, *LATENCY, '--plot', self.path('x.svg'), status=1)
        self.assertEqual(said, 'softhca-plot: it needs matplotlib\n'
                         'softhca-perf: --plot: no picture: softhca-plot failed\n')
        # -S: without the folders of packages
        said = run('/usr/bin/python3', '-I', '-S', PLOT, '--check', status=1)
        self.assertEqual(said, 'softhca-plot: it needs matplotlib: apt-get install python3-matplotlib\n')


@unittest.skipUnless(HAVE, 'python3-matplotlib is not installed')
class Pictures(Case):
    def labels(self, path):
        with open(path, encoding='utf-8') as file:
            return re.findall(r'<text[^>]*>([^<]*)</text>', file.read())

    def colours(self, path):
        return [int(word) for word in run('/usr/bin/python3', '-c', COLOURS, path).split()]

    def test_latency(self):
        """softhca-perf draws its own run."""
        picture = self.path('latency.svg')
        said = run(PERF, *LATENCY, '--plot', picture)
        self.assertIn('# rc write lat', said)
        labels = self.labels(picture)
        for label in 'Distribution of latencies', 'percentile', '99 %', 'us', 'rc write 64':
            self.assertIn(label, labels)
        if shutil.which('rsvg-convert') is None:
            return
        run('rsvg-convert', '-o', self.path('latency.png'), picture)
        self.assertGreater(self.colours(self.path('latency.png'))[0], 4)

    def test_several(self):
        """Two runs of several sizes, and their lines in each panel."""
        timed = self.rows(*SIMULATED, '--size', '65536', '--duration', '0.05')
        for name, op in ('one', 'write'), ('two', 'read'):
            rows = self.rows(*PLAIN, '--op', op, '--all-sizes', '--iters', '4', '--depth', '4')
            with open(self.path(name + '.json'), 'w', encoding='utf-8') as file:
                json.dump({'rows': rows + timed}, file)
        files = self.path('one.json'), self.path('two.json')
        run(PLOT, *files, '--name', 'before', '--output', self.path('both.svg'))
        labels = self.labels(self.path('both.svg'))
        for label in ('Bandwidth', 'Gb/s', 'Message rate', 'bytes per message', 'Message rate over time', 'seconds',
                      'before rc write', 'two rc read', '8M'):
            self.assertIn(label, labels)
        run(PLOT, *files, '--output', self.path('both.png'))
        for colours in self.colours(self.path('both.png')):
            self.assertGreater(colours, 8)
        run(PLOT, *files, '--name', 'before', '--output', self.path('again.svg'))
        with open(self.path('both.svg'), 'rb') as one, open(self.path('again.svg'), 'rb') as two:
            self.assertEqual(one.read(), two.read())

    def test_refused(self):
        with open(self.path('odd.json'), 'w', encoding='utf-8') as file:
            file.write('{"rows": [')
        for words, complaint, status in (
                ((), 'no RESULT.json is named', 2),
                (('x.json', '--output', 'x.gif'), '--output: x.gif ends with none of .svg, .png, .pdf', 2),
                (('/nowhere/x.json',), 'cannot read /nowhere/x.json: No such file', 1),
                ((self.path('odd.json'),), 'is no result of softhca-perf --json', 1),
                (('--check', '--output', '/nowhere/x.svg'), 'no folder to write to: /nowhere', 1)):
            self.assertIn('softhca-plot: ', run(PLOT, *words, status=status))
            self.assertIn(complaint, run(PLOT, *words, status=status))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
