# SPDX-License-Identifier: BSD-3-Clause
"""A client of a daemon that speaks the control channel itself."""
import os
import re
import socket
import struct

from daemon import READY_S

TOKEN = 16  # bytes at the end of what a daemon tells a client


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

    def __init__(self, path):
        self.seq = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(READY_S)
        self.socket.connect(path)
        reply = self.call('HELLO', struct.pack('=II', 0x41434873, 0))
        self.seq = struct.unpack_from('=Q', reply, 192)[0] + 1

    def call(self, op, body=b'', given=()):
        head = struct.pack('=HHIQ', self.VERSION, self.OPS[op], len(body), self.seq)
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

    def info(self):
        """struct hca_ctl_info"""
        answer = self.call('INFO')[192:]
        self.seq += 1
        return answer

    def close(self):
        self.socket.close()
