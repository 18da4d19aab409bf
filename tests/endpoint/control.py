# SPDX-License-Identifier: BSD-3-Clause
"""A client of a daemon that speaks the control channel itself."""
import os
import re
import socket
import struct
import threading

from daemon import READY_S

TOKEN = 16  # bytes at the end of a daemon's message to a client


def control_rows():
    """Version of the control channel and the numbers of its operations, as src/abi/abi_ops.h has them."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '../../src/abi/abi_ops.h'), encoding='utf-8') as f:
        text = f.read()
    rows = text[text.index('#define HCA_CTL_OPS(X)'):]
    names = re.findall(r'X\(([A-Z_]+), ', rows[:rows.index('#endif')])
    return int(re.search(r'define HCA_CTL_VERSION (\d+)u', text)[1]), {n: i for i, n in enumerate(names)}


class Control:
    """A client that speaks the control channel itself (src/ipc/channel/ipc_proto.h)."""

    VERSION, OPS = control_rows()

    def __init__(self, path, minor=0):
        self.seq = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(READY_S)
        self.socket.connect(path)
        reply = self.call('HELLO', struct.pack('=IBBH', 0x41434873, 0, minor, 0))
        self.seq = struct.unpack_from('=Q', reply, 192)[0] + 1

    def call(self, op, body=b'', given=()):
        number = self.OPS[op] if isinstance(op, str) else op
        head = struct.pack('=HHIQ', self.VERSION, number, len(body), self.seq)
        socket.send_fds(self.socket, [head + body], given)
        message, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 4)
        for fd in fds:
            os.close(fd)
        return message

    def create_channel(self):
        """0 or the daemon's negative errno."""
        err = struct.unpack_from('=i', self.call('CREATE_CHANNEL'), 16)[0]
        self.seq += 1
        return err

    def open_xrcd(self):
        """The XRC domain of another file; 0 or the daemon's negative errno."""
        file = os.memfd_create('xrc')
        err = struct.unpack_from('=i', self.call('OPEN_XRCD', b'\1\0\0\0', [file]), 16)[0]
        os.close(file)
        self.seq += 1
        return err

    def identify(self, release):
        """The release of the daemon, which learns that of this client."""
        answer = self.call('IDENTIFY', release.encode().ljust(32, b'\0'))[192:]
        self.seq += 1
        return answer.rstrip(b'\0').decode()

    def refused(self, op):
        """The daemon's negative errno and reason"""
        reply = self.call(op)
        self.seq += 1
        return struct.unpack_from('=i', reply, 16)[0], reply[24:192].rstrip(b'\0').decode()

    def info(self):
        """struct hca_ctl_info"""
        answer = self.call('INFO')[192:]
        self.seq += 1
        return answer

    def close(self):
        self.socket.close()


class OldDaemon:
    """For the library that connects to it a daemon of version 7.0: it hides the features of both in HELLO."""
    HEADS = (16, 192)  # of a request and a reply
    OFFERS = (4, 12)  # in the body of HELLO and of its answer

    def __init__(self, path, daemon):
        self.daemon = daemon
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                ends = [self.listener.accept()[0], socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)]
            except OSError:
                return
            ends[1].connect(self.daemon)
            for side in 0, 1:
                threading.Thread(target=self.carry, args=(ends, side), daemon=True).start()

    def carry(self, ends, side):
        first = True
        while True:
            message, fds, _, _ = socket.recv_fds(ends[side], 1 << 16, 16)
            if not message:
                break
            if first:
                at = self.HEADS[side] + self.OFFERS[side]
                message = message[:at] + bytes(4) + message[at + 4:]
            first = False
            socket.send_fds(ends[1 - side], [message], fds)
            for fd in fds:
                os.close(fd)
        for end in ends:
            end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
