#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that attach to softhcad and mean ill, or have little: the daemon serves others and ends in time.

test_boundary.py SOFTHCAD [unittest arguments]
"""
import os
import socket
import struct
import sys
import unittest

from control import Control
from daemon import Daemon, READY_S, folder

BINARY = os.path.abspath(sys.argv[1])
LINGER_S = 20 * READY_S  # a waiter would hang
TCP = socket.AF_INET, socket.SOCK_STREAM
CONTROL = socket.AF_UNIX, socket.SOCK_SEQPACKET


class Case(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def daemon(self, part, *parts):
        d = Daemon(BINARY, self.place, 'shb%d%s' % (os.getpid(), part), 'net_null0', '10.66.0.1/24', *parts)
        self.addCleanup(d.close)
        return d.start()


class Linger(Case):
    """Sockets with unsent data that are closed slowly, queued to the daemon."""

    def lingering(self):
        """The last close waits, because its peer, which stays open, receives nothing."""
        listener = socket.create_server(('127.0.0.1', 0))
        full = socket.create_connection(listener.getsockname())
        peer = listener.accept()[0]
        listener.close()
        self.addCleanup(peer.close)
        full.setblocking(False)
        try:
            while full.send(bytes(1 << 16)):
                pass
        except BlockingIOError:
            pass
        full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, LINGER_S))
        return full

    def attack(self, path, greet, packets, nested):
        """A process that queues such sockets, as they are or in a socket, and ends: a process that ends
        does not wait for its own."""
        full = self.lingering()
        go, gone = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(gone)
                os.read(go, 1)  # until the parent has closed its own
                given = full
                if nested:
                    given, inner = socket.socketpair(*CONTROL)
                    socket.send_fds(inner, [b'?'], [full.fileno()])
                    self.keep = inner
                s = Control(path).socket if greet else socket.socket(*CONTROL)
                if not greet:
                    s.connect(path)
                for _ in range(packets):
                    socket.send_fds(s, [b'?'], [given.fileno()])
                status = 0
            except (BrokenPipeError, ConnectionResetError):
                status = 0  # the daemon has judged the first packet
            finally:
                os._exit(status)
        full.close()
        os.close(go)
        os.close(gone)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_sigterm(self):
        d = self.daemon('l')
        # judged, never read, and beyond the greeting
        for turn in range(6):
            self.attack(d.socket, turn % 3 == 2, turn % 3 + 1, turn >= 3)
        for _ in range(4):
            client = Control(d.socket)
            self.assertEqual(client.create_channel(), 0)
            client.close()
        stays = Control(d.socket)
        self.addCleanup(stays.close)
        d.suspend()
        for turn in range(4):
            self.attack(d.socket, False, 3, turn % 2)  # in the backlog
        given = self.lingering()
        socket.send_fds(stays.socket, [b'?'], [given.fileno()])  # of a client that stays
        given.detach()
        d.process.terminate()
        d.resume()
        self.assertEqual(d.stop(), 0, d.text())
        self.assertFalse(os.path.exists(d.socket))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
