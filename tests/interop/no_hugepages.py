#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that gets no hugepages, as on a machine that has none.

no_hugepages.py PROGRAM [argument ...]

mmap(2) with MAP_HUGETLB and shmget(2) with SHM_HUGETLB fail with ENOMEM. x86-64.
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
ALLOW, ERROR = 0x7fff0000, 0x00050000
LOAD, EQUAL, ANY_BIT, ANSWER = 0x20, 0x15, 0x45, 0x06
MMAP, SHMGET = 9, 29
FLAGS_OF_MMAP, FLAGS_OF_SHMGET = 40, 32  # where seccomp's data has them
MAP_HUGETLB, SHM_HUGETLB = 0x40000, 0o4000


def program():
    def instruction(code, value, yes=0, no=0):
        return struct.pack('HBBI', code, yes, no, value)

    return [instruction(LOAD, 0),
            instruction(EQUAL, MMAP, 0, 2),
            instruction(LOAD, FLAGS_OF_MMAP),
            instruction(ANY_BIT, MAP_HUGETLB, 3, 4),
            instruction(EQUAL, SHMGET, 0, 3),
            instruction(LOAD, FLAGS_OF_SHMGET),
            instruction(ANY_BIT, SHM_HUGETLB, 0, 1),
            instruction(ANSWER, ERROR | errno.ENOMEM),
            instruction(ANSWER, ALLOW)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    words = program()
    text = ctypes.create_string_buffer(b''.join(words))
    head = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(words), ctypes.addressof(text)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'no filter of system calls')
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == '__main__':
    main()
