#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Output of the pretty printers of config/softhca-gdb.py for sample.c.

test_printers.py SCRIPT SAMPLE
"""
import os
import shutil
import subprocess
import sys

SCRIPT, SAMPLE = (os.path.abspath(path) for path in sys.argv[1:3])
EXPECTED = {
    'hca->qp[0]': ['no QP'],
    'hca->qp[1]': ['QP 0x000401 UC RTS, peer 0x000802', '2 requests: tail 3, next 4, head 5',
                   'una_psn 100, next_psn 120', 'retries 0 of 7', 'rewind to 100 (SEQ_NAK)', 'epsn 77'],
    '$window(hca, 1)': ['3: RDMA_WRITE len 20480 WQE 3 PSN 100..119 to 0x1000 key 0x55 [SIGNALED|SENT]',
                        '4: SEND len 12 WQE 0 not sent fails with LOCAL_PROT [FULL]'],
    '*$record(hca, 1)': ['RDMA_WRITE len 20480'],
    'good_cqe': ['CQE SQ of 0x000401 WQE at 0: RDMA_WRITE, 20480 bytes'],
    'error_cqe': ['CQE RQ of 0x000401 WQE at 128: WR_FLUSH'],
}

if shutil.which('gdb') is None:
    print('gdb is not installed')
    sys.exit(77)
words = ['gdb', '-nx', '-batch', '-ex', 'source ' + SCRIPT, '-ex', 'break look', '-ex', 'run']
for expression in EXPECTED:
    words += ['-ex', 'echo == %s\\n' % expression, '-ex', 'output ' + expression, '-ex', 'echo \\n']
environment = dict(os.environ, DEBUGINFOD_URLS='')
said = subprocess.run(words + [SAMPLE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      encoding='utf-8', timeout=240, check=False, env=environment).stdout
print(said)
if 'ptrace' in said or 'Could not trace the inferior' in said:
    print('gdb may not trace a process here')
    sys.exit(77)
for expression, expected in EXPECTED.items():
    part = said.split('== %s\n' % expression)[1].split('\n== ')[0].replace('\\n', '\n')
    for text in expected:
        assert text in part, '%s: "%s" is missing in\n%s' % (expression, text, part)
