#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""benchmarks/report --smoke: the shape of its JSON, and pictures that are XML with something drawn."""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

REPORT, BUILD = sys.argv[1:3]
SVG = '{http://www.w3.org/2000/svg}'


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = subprocess.run([sys.executable, REPORT, '--smoke', '--quiet', '--build', BUILD, '--output',
                                  cls.folder.name], stdout=subprocess.PIPE, check=True).stdout.decode()
        with open(os.path.join(cls.folder.name, 'report.json'), encoding='utf-8') as file:
            cls.document = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_head(self):
        self.assertEqual((self.document['program'], self.document['version']), ('report', 1))
        for name in ('cpu', 'cores', 'kernel', 'dpdk', 'build_type', 'commit', 'load', 'cpus_of_the_report'):
            self.assertIn(name, self.document['host'])

    def test_rows(self):
        keys = [row['key'] for row in self.document['table']]
        self.assertEqual(len(keys), len(set(keys)))
        for row in self.document['table']:
            self.assertIn(row['title'], self.out)
            if 'skipped' in row:
                self.assertGreater(len(row['skipped']), 10)
                continue
            self.assertGreater(row['value'], 0)
            self.assertEqual(len(row['rounds']), self.document['rounds'])
            self.assertEqual(row['target'] is None, 'met' not in row)

    def test_page(self):
        """--docs writes the table between the marks and leaves the rest of the page; twice is as once."""
        with tempfile.TemporaryDirectory() as docs:
            page = os.path.join(docs, 'measurements.md')
            with open(page, 'w', encoding='utf-8') as file:
                file.write('before\n<!-- report -->\nold\n<!-- end of report -->\nafter\n')
            loader = importlib.machinery.SourceFileLoader('report', REPORT)
            report = importlib.util.module_from_spec(importlib.util.spec_from_loader('report', loader))
            loader.exec_module(report)
            for _ in range(2):
                report.write_docs(self.document, self.folder.name, docs)
                with open(page, encoding='utf-8') as file:
                    text = file.read()
                self.assertEqual((text.count('before\n'), text.count('after\n'), text.count('old')), (1, 1, 0))
                for row in self.document['table']:
                    self.assertEqual(text.count('| %s |' % row['title']), 1)
            for name in self.document['pictures']:
                self.assertIn('(report/%s)' % name, text)
                self.assertTrue(os.path.exists(os.path.join(docs, 'report', name)))
            with open(page, 'w', encoding='utf-8') as file:
                file.write('no marks\n')
            with self.assertRaises(report.Failed):
                report.write_docs(self.document, self.folder.name, docs)
            for more in ([], ['--smoke']):  # said before anything is measured
                command = [sys.executable, REPORT, '--build', BUILD, '--docs', docs]
                self.assertEqual(subprocess.run(command + more, stderr=subprocess.PIPE, timeout=20,
                                                check=False).returncode, 2)

    def test_measured(self):
        """--smoke measures these rows and skips all others."""
        measured = {row['key'] for row in self.document['table'] if 'skipped' not in row}
        self.assertEqual(measured, {'write64_model', 'write64_model_own', 'read64_model',
                                     'read_write', 'half_trip', 'half_trip_tcp'})
        self.assertIn('skipped: --smoke does not measure incast', self.out)

    def test_figures(self):
        figures = self.document['measurements'][0]
        for op in ('write', 'send', 'read'):
            for kernel in ('isal', 'own'):
                self.assertGreater(figures['model/%s/4096/%s' % (op, kernel)]['ns'], 0)
            self.assertGreater(self.document['sizes'][op]['64'], 0)
        self.assertEqual(set(self.document['latency_us']), {'half_trip', 'tcp'})
        self.assertLessEqual(self.document['latency_us']['tcp']['p50'], self.document['latency_us']['tcp']['p99'])

    def test_pictures(self):
        self.assertIn('bandwidth.svg', self.document['pictures'])
        for name in self.document['pictures']:
            root = xml.etree.ElementTree.parse(os.path.join(self.folder.name, name)).getroot()
            self.assertEqual(root.tag, SVG + 'svg')
            self.assertTrue(any(self.document['host']['cpu'] in (text.text or '') for text in root.iter(SVG + 'text')))
            for shape in root.iter(SVG + 'path'):
                self.assertNotIn('nan', shape.get('d'))

    def test_refused(self):
        for wrong in ('--rounds=0', '--seconds=-1'):
            run = subprocess.run([sys.executable, REPORT, wrong], stderr=subprocess.PIPE, check=False)
            self.assertEqual(run.returncode, 2)
        run = subprocess.run([sys.executable, REPORT, '--smoke', '--build', self.folder.name, '--output',
                              self.folder.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b'report: ', run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
