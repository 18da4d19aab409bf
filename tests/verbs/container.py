#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program as an ordinary user in a usual container would run it.

container.py PROGRAM [argument ...]

No capabilities, at most 64 MiB of locked memory, the calls refused as by container engines (among them
userfaultfd), no hugepages, no /dev/net/tun. As root it changes to an unprivileged user first; another user
stays. Files and network are those of this machine.
"""
import ctypes
import errno
import os
import resource
import struct
import sys

NOBODY = 65534
LOCKED = 64 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
SECCOMP_MODE_FILTER = 2
CAPABILITIES = 64
HIDDEN = '/dev/net', '/dev/hugepages', '/sys/kernel/mm/hugepages'

# Calls refused by the default profiles of Docker and Podman, by number on x86-64
REFUSED = {
    'ptrace': 101, 'syslog': 103, 'pivot_root': 155, 'acct': 163, 'settimeofday': 164, 'mount': 165,
    'umount2': 166, 'swapon': 167, 'swapoff': 168, 'reboot': 169, 'init_module': 175,
    'delete_module': 176, 'quotactl': 179, 'clock_settime': 227, 'mbind': 237,
    'set_mempolicy': 238, 'get_mempolicy': 239, 'kexec_load': 246, 'add_key': 248,
    'request_key': 249, 'keyctl': 250, 'unshare': 272, 'move_pages': 279,
    'perf_event_open': 298, 'name_to_handle_at': 303, 'open_by_handle_at': 304, 'setns': 308,
    'process_vm_readv': 310, 'process_vm_writev': 311, 'kcmp': 312, 'finit_module': 313,
    'bpf': 321, 'userfaultfd': 323, 'io_uring_setup': 425, 'io_uring_enter': 426,
    'io_uring_register': 427, 'fsopen': 430, 'fsconfig': 431, 'fsmount': 432,
}
CLONE3 = 435  # unknown to older profiles: the C library falls back to clone


def call(function, *words):
    if function(*words) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def instruction(code, value, yes=0, no=0):
    return struct.pack('HBBI', code, yes, no, value)


def filter_program():
    load, equal, answer = 0x20, 0x15, 0x06
    allow, error = 0x7fff0000, 0x00050000
    program = [instruction(load, 0), instruction(equal, CLONE3, 0, 1),
               instruction(answer, error | errno.ENOSYS)]
    for number in sorted(REFUSED.values()):
        program += [instruction(equal, number, 0, 1), instruction(answer, error | errno.EPERM)]
    return program + [instruction(answer, allow)]


def hide():
    call(LIBC.unshare, CLONE_NEWNS)
    call(LIBC.mount, b'none', b'/', None, MS_REC | MS_PRIVATE, None)
    for path in HIDDEN:
        if os.path.isdir(path):
            call(LIBC.mount, b'none', path.encode(), b'tmpfs', 0, None)


def become_nobody():
    for capability in range(CAPABILITIES):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def refuse_calls():
    program = filter_program()
    text = ctypes.create_string_buffer(b''.join(program))
    head = struct.pack('HxxxxxxQ', len(program), ctypes.addressof(text))
    call(LIBC.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call(LIBC.prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(head), 0, 0)


def main():
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    locked = LOCKED if most == resource.RLIM_INFINITY else min(LOCKED, most)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))
    if os.geteuid() == 0:
        hide()
        become_nobody()
    refuse_calls()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == '__main__':
    main()
