#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completions of the shells: bash offers the programs' options; zsh and fish read theirs.

test_completion.py SOFTHCA-PERF SOFTHCA-CTL BASH-FILE ZSH-FILE FISH-FILE...
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PERF, CTL, BASH, ZSH, *FISH = [os.path.abspath(word) for word in sys.argv[1:]]
HAVE_RUN = any('softhca-run' in path for path in FISH)


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                          timeout=60, check=False, **options)


def text_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


class Bash(unittest.TestCase):
    def reply(self, *words, file=BASH, **options):
        """Words that bash offers for the last one."""
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_softhca "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        run = output('bash', '--norc', '-c', script, file, *words, **options)
        self.assertEqual(run.returncode, 0, run.stdout)
        return sorted(run.stdout.splitlines() if run.stdout.strip() else [])

    def test_registered(self):
        names = ['softhca-perf', 'softhca-ctl', 'softhcad'] + ['softhca-run'] * HAVE_RUN
        run = output('bash', '--norc', '-c', 'source "$0"; complete -p "$@"', BASH, *names)
        self.assertEqual((run.returncode, run.stdout.count('-F _softhca ')), (0, len(names)), run.stdout)

    def test_options(self):
        """Exactly those of --help."""
        said = re.findall(r'^  (?:(-\w),)? +(--[a-z-]+)', output(PERF, '--help').stdout, re.M)
        self.assertEqual(self.reply('softhca-perf', '-'),
                         sorted(word for pair in said for word in pair if word))
        self.assertEqual(self.reply('build/apps/softhca-perf', '--qp'), ['--qps'])
        self.assertIn('--check', self.reply('softhcad', '--'))

    def test_values(self):
        """Exactly those that the program names when it refuses one."""
        for option in ('--op', '--wire', '--service', '--test', '--layout', '--executor', '--idle', '--rule'):
            said = output(PERF, option, 'x').stdout
            values = re.split(', | or ', re.search(r'there is no "x": (.*); see', said).group(1))
            self.assertEqual(self.reply('softhca-perf', option, ''), sorted(values))
        self.assertEqual(self.reply('softhca-perf', '-c', 'x'), ['xrc'])
        self.assertEqual(self.reply('softhca-perf', '--size', ''), [])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, 'a b.json')
            os.mknod(name)
            self.assertEqual(self.reply('softhca-perf', '--json', os.path.join(folder, 'a')), [name])

    def test_daemons(self):
        """Names of sockets are of others: the shell expands nothing in them."""
        with tempfile.TemporaryDirectory() as folder:
            sockets = os.path.join(folder, 'sockets')
            os.mkdir(sockets)
            names = ['$(touch made)', '`touch made`', 'a b', '$HOME', 'x*']
            for name in names:
                os.mknod(os.path.join(sockets, name + '.sock'))
            file = os.path.join(folder, 'softhca')
            with open(file, 'w', encoding='utf-8') as copy:
                text = text_of(BASH)
                self.assertIn('/run/softhca', text)
                copy.write(text.replace('/run/softhca', sockets))
            self.assertEqual(self.reply('softhca-run', '--device', '', file=file, cwd=folder), sorted(names))
            self.assertEqual(self.reply('softhca-run', '--device', 'a', file=file, cwd=folder), ['a b'])
            self.assertEqual(sorted(os.listdir(folder)), ['sockets', 'softhca'])

    def test_ctl(self):
        commands = re.findall(r'^  ([a-z]+)', output(CTL, '--help').stdout.split('options of every')[0], re.M)
        self.assertEqual(sorted(word for word in self.reply('softhca-ctl', '') if word[0] != '-'),
                         sorted(commands))
        self.assertEqual(self.reply('softhca-ctl', 'counters', '--no'), ['--nonzero'])
        self.assertEqual(self.reply('softhca-ctl', 'impair', '--dir', ''), ['both', 'in', 'out'])
        self.assertEqual(self.reply('softhca-ctl', 'impair', 'o'), ['off'])
        self.assertEqual(self.reply('softhca-ctl', 'status', '--no'), [])

    @unittest.skipUnless(HAVE_RUN, 'built without verbs')
    def test_run(self):
        self.assertEqual(self.reply('softhca-run', '--like', ''), ['mlx5'])
        self.assertIn('--impair', self.reply('softhca-run', '--own', '--i'))
        self.assertEqual(self.reply('softhca-run', '--sysfs', '=', 'm'), ['mount'])
        self.assertIn('bash', self.reply('softhca-run', '--embed', 'bas'))
        self.assertEqual(self.reply('softhca-run', '--embed', 'bash', '--emb'), [])


class Others(unittest.TestCase):
    def test_zsh(self):
        text = text_of(ZSH)
        self.assertTrue(text.startswith('#compdef softhca-perf softhca-ctl softhcad'))
        self.assertIn('{-s,--size}', text)
        self.assertIn(':(write read send', text)
        if shutil.which('zsh') is None:
            self.skipTest('zsh is not installed')
        run = output('zsh', '-f', '-n', ZSH)
        self.assertEqual((run.returncode, run.stdout), (0, ''))
        # loaded as the shell does it
        load = 'fpath=($1 $fpath); autoload -U compinit; compinit -u -D; whence -w _softhca; ' \
            'print $_comps[softhca-ctl]; autoload +X _softhca'
        run = output('zsh', '-f', '-c', load, 'zsh', os.path.dirname(ZSH))
        self.assertIn('_softhca: function\n_softhca\n', run.stdout)

    def test_fish(self):
        for path in FISH:
            name = os.path.basename(path).replace('.fish', '')
            lines = [line for line in text_of(path).splitlines() if not line.startswith('#')]
            self.assertGreater(len(lines), 3)
            for line in lines:
                self.assertTrue(line.startswith('complete -c %s ' % name), line)
        if shutil.which('fish') is None:
            self.skipTest('fish is not installed')
        for path in FISH:
            run = output('fish', '--no-config', '--no-execute', path)
            self.assertEqual((run.returncode, run.stdout), (0, ''))
        ask = 'source $argv[1]; complete -C "softhca-ctl impair --dir "'
        run = output('fish', '--no-config', '-c', ask, os.path.join(os.path.dirname(FISH[0]), 'softhca-ctl.fish'))
        self.assertEqual(sorted(run.stdout.split()), ['both', 'in', 'out'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
