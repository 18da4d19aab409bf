#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""benchmarks/rxe without a kernel: messages, the script of the guest, and figures from a program that prints
the lines of a guest.

test_rxe.py BENCHMARKS/RXE BUILD
"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import unittest

RXE, BUILD = sys.argv[1:3]
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader('rxe', RXE)
rxe = importlib.util.module_from_spec(importlib.util.spec_from_loader('rxe', LOADER))
LOADER.exec_module(rxe)

FAKE = """#!/bin/sh
for word in "$@"; do case $word in init=*) init=${word#init=};; esac; done
echo 6.1
grep -c ^one $init >/dev/null || exit 1
for pause in 0.1 0.6; do
	echo @@begin
	sleep $pause
	echo "@@end %d"
done
echo @@done
sleep 100
"""


class Rxe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kernel = os.path.join(folder.name, 'linux')

    def fake(self, status):
        with open(self.kernel, 'w', encoding='ascii') as file:
            file.write(FAKE % status)
        os.chmod(self.kernel, 0o755)
        return types.SimpleNamespace(kernel=self.kernel, rows=['write 1 MiB'], timeout=30)

    def said(self, *words):
        run = subprocess.run([sys.executable, RXE, '--build', BUILD, *words], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, encoding='utf-8', check=False)
        return run.returncode, run.stdout

    def test_missing(self):
        """Exit status 77, and the reason."""
        status, out = self.said()
        self.assertEqual(status, 77, out)
        self.assertIn('--make-kernel FOLDER builds one', out)
        status, out = self.said('--kernel', self.kernel)
        self.assertEqual((status, self.kernel + ': not a program' in out), (77, True), out)
        for wrong in (('--rounds', '0'), ('--rows', 'nothing like this')):
            self.assertEqual(self.said(*wrong)[0], 2)

    def test_script(self):
        subprocess.run(['sh', '-n'], input=rxe.INIT.encode(), check=True)
        self.assertEqual(len(rxe.CONFIG), len(set(rxe.CONFIG)))

    def test_figures(self):
        """500 messages of 1 MiB in half a second, and no process is left."""
        figures = rxe.measure_rxe(self.fake(0))
        self.assertLessEqual(figures['write 1 MiB'], 500 * (1 << 20) * 8 / 0.4 / 1e9)
        self.assertGreater(figures['write 1 MiB'], 0.01)

    def test_failure(self):
        with self.assertRaisesRegex(rxe.Failed, 'perftest failed in the guest'):
            rxe.measure_rxe(self.fake(1))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
