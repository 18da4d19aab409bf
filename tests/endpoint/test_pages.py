#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages have the options of programs and configuration; examples and the unit are well formed.

test_pages.py ROOT SOFTHCAD SOFTHCA-PERF PERF-PAGE UNIT SOFTHCA-CTL SOFTHCA-PLOT
              [SOFTHCA-RUN]
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT, DAEMON, PERF, PERF_PAGE, UNIT, CTL, PLOT, *RUN = [os.path.abspath(word) for word in sys.argv[1:]]
PAGES = ('apps/softhcad/softhcad.8', PERF_PAGE, 'config/softhcad.conf.5', 'apps/ctl/softhca-ctl.1',
         'apps/run/softhca-run.1', 'apps/plot/softhca-plot.1')
# Options in a line of --help, and in an item of a page: letter, name, argument
HELP = re.compile(r'^ +(?:-(\w), +)?--([a-z-]+)(?: ([A-Z]\w*(?::[A-Z]\w*)*|[a-z0-9]+)(?=  |$))?', re.M)
ITEM = re.compile(r'^\.It (?:Fl (\w)(?: Ar \w+)? , )?Fl -([a-z-]+)(?: (?:Ar|Cm) (\S+)$|(?= Ns Op)|$)', re.M)


def page(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as file:
        return file.read().replace('\\-', '-')


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', timeout=240, check=False)


def lower(options):
    """Arguments are in capitals in some pages and not in others."""
    return sorted((letter, name, value.lower()) for letter, name, value in options)


class Pages(unittest.TestCase):
    def options(self, program, name):
        """--help and the page have the same options, with the same letters and arguments."""
        said = HELP.findall(output(program, '--help').stdout)
        self.assertGreater(len(said), 3)
        self.assertEqual(sorted(option[1] for option in said), sorted({option[1] for option in said}))
        self.assertEqual(lower(said), lower(ITEM.findall(page(name))), name)

    def test_daemon(self):
        self.options(DAEMON, 'apps/softhcad/softhcad.8')
        self.assertTrue(output(DAEMON, '--foo').stdout.startswith("softhcad: unrecognized option '--foo'\n"))

    def test_perf(self):
        self.options(PERF, PERF_PAGE)
        self.assertIn('HOST[:PORT]', page(PERF_PAGE))

    def test_plot(self):
        self.options(PLOT, 'apps/plot/softhca-plot.1')

    @unittest.skipUnless(RUN, 'built without verbs')
    def test_run(self):
        self.options(RUN[0], 'apps/run/softhca-run.1')

    def test_ctl(self):
        """Each command with its options, and those of all commands."""
        said, common = output(CTL, '--help').stdout.split('options of every command:')
        commands = {name: sorted(set(re.findall(r'--([a-z_-]+)', usage))) for name, usage in
                    re.findall(r'^  ([a-z]+)((?:.*)(?:\n {8}[ \[|].*)*)\n {8}\w', said, re.M)}
        self.assertIn('drop', commands['impair'])
        written = {}
        for name, rest in re.findall(r'^\.It Cm (\w+)((?:.*\n(?!\.It Cm|\.Sh))*.*)', page('apps/ctl/softhca-ctl.1'), re.M):
            items = '\n'.join([rest.split('\n')[0]] + re.findall(r'^\.It (.*)', rest, re.M))
            written.setdefault(name, set()).update(re.findall(r'(?:Fl | , )-([a-z_-]+)', items))
        self.assertEqual({name: sorted(options) for name, options in written.items()}, commands)
        self.assertEqual(lower(HELP.findall(common)), lower(ITEM.findall(page('apps/ctl/softhca-ctl.1').split('.It Cm')[0])))

    def test_keys(self):
        """Every key of the sample, in its section, with the default the sample shows."""
        text = page('config/softhcad.conf.5')
        with open(os.path.join(ROOT, 'config/softhcad.conf'), encoding='utf-8') as file:
            sample = file.read()
        sections = re.split(r'^\[(\w+)\]$', sample, flags=re.M)[1:]
        for section, body in zip(sections[::2], sections[1::2]):
            self.assertIn('.Ss Section %s\n' % section, text)
            part = text.split('.Ss Section %s\n' % section)[1].split('.Ss ')[0]
            items = [item.split('\n', 1) for item in re.split(r'^\.It ', part, flags=re.M)[1:]]
            for key, value in re.findall(r'^(\w+) = ?(.*)$', body, re.M):
                said = [item for name, item in items if re.match(r'Ic (.* )?%s\b' % key, name)]
                self.assertEqual(len(said), 1, '[%s] %s is not in the page' % (section, key))
                if value:
                    self.assertRegex(said[0], r'\b%s\b' % re.escape(value),
                                     '[%s] %s: the default is not in the page' % (section, key))

    def test_lint(self):
        if shutil.which('mandoc') is None:
            self.skipTest('mandoc is not installed')
        for name in PAGES:
            result = output('mandoc', '-T', 'lint', '-W', 'warning', os.path.join(ROOT, name))
            self.assertEqual((result.returncode, result.stdout), (0, ''), name)

    def test_examples(self):
        examples = glob.glob(os.path.join(ROOT, 'config/examples/*.conf'))
        self.assertGreater(len(examples), 4)
        for path in examples:
            result = output(DAEMON, '-c', path, '--check')
            # examples are of other machines: their interfaces and CPUs are not here
            other = r'there is no interface|CPU \d+ cannot be used|expected a CPU for programs'
            complaints = [line for line in result.stdout.splitlines()
                          if not re.search(other + '|warning: |: good$', line)]
            self.assertEqual(complaints, [])
            if result.returncode != 0:
                self.assertRegex(result.stdout, other)

    def test_sample(self):
        """A value that only the user can choose is left open, and named."""
        result = output(DAEMON, '-c', os.path.join(ROOT, 'config/softhcad.conf'), '--check')
        self.assertNotEqual(result.returncode, 0)
        self.assertIn('set device = net_af_packet0,iface=eth1', result.stdout)
        self.assertIn('address = 192.0.2.1/24 in [addresses]', result.stdout)

    def test_unit(self):
        if shutil.which('systemd-analyze') is None:
            self.skipTest('systemd-analyze is not installed')
        for unit in UNIT, os.path.join(os.path.dirname(UNIT), 'softhca-metrics.service'):
            result = output('systemd-analyze', 'verify', '--man=no', unit)
            complaints = [line for line in result.stdout.splitlines()
                          if os.path.basename(unit) in line and 'is not executable' not in line]
            self.assertEqual(complaints, [])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
