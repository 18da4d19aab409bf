# SPDX-License-Identifier: BSD-3-Clause
"""Connection management on the wire, after the IBTA specification alone (volume 1, chapters 12 and 13, annexes
A11 and A17): makes and reads frames with the messages, and files of frames. Written apart from src/cm/ib.
"""
import ipaddress
import struct
import zlib

MAD_BYTES = 256
UDP_PORT = 4791
SEND_ONLY = 0x64  # of UD
QKEY = 0x80010000
NAMES = {0x10: 'REQ', 0x11: 'MRA', 0x12: 'REJ', 0x13: 'REP', 0x14: 'RTU', 0x15: 'DREQ', 0x16: 'DREP',
         0x17: 'SIDR_REQ', 0x18: 'SIDR_REP', 0x19: 'LAP', 0x1a: 'APR'}
NUMBERS = {name: number for number, name in NAMES.items()}
ADDRESS = 128  # bits

# Of each message: (field, bits), in order; a name that begins with - is reserved.
PATH = [('local_lid', 16), ('remote_lid', 16), ('local_gid', ADDRESS), ('remote_gid', ADDRESS), ('flow_label', 20),
        ('-', 6), ('rate', 6), ('traffic_class', 8), ('hop_limit', 8), ('sl', 4), ('subnet_local', 1), ('-', 3),
        ('ack_timeout', 5), ('-', 3)]
FIELDS = {
    'REQ': [('local_comm', 32), ('-', 32), ('service', 64), ('guid', 64), ('-', 32), ('qkey', 32), ('qpn', 24),
            ('responder_resources', 8), ('eecn', 24), ('initiator_depth', 8), ('remote_eecn', 24),
            ('remote_timeout', 5), ('transport', 2), ('flow_control', 1), ('psn', 24), ('local_timeout', 5),
            ('retry', 3), ('pkey', 16), ('mtu', 4), ('rdc', 1), ('rnr_retry', 3), ('cm_retries', 4), ('srq', 1),
            ('ext_transport', 3)] +
           [(name if name == '-' else 'primary_' + name, bits) for name, bits in PATH] +
           [(name if name == '-' else 'alternate_' + name, bits) for name, bits in PATH],
    'MRA': [('local_comm', 32), ('remote_comm', 32), ('message', 2), ('-', 6), ('service_timeout', 5), ('-', 3)],
    'REJ': [('local_comm', 32), ('remote_comm', 32), ('message', 2), ('-', 6), ('info_len', 7), ('-', 1),
            ('reason', 16), ('info', 576)],
    'REP': [('local_comm', 32), ('remote_comm', 32), ('qkey', 32), ('qpn', 24), ('-', 8), ('eecn', 24), ('-', 8),
            ('psn', 24), ('-', 8), ('responder_resources', 8), ('initiator_depth', 8), ('ack_delay', 5),
            ('failover', 2), ('flow_control', 1), ('rnr_retry', 3), ('srq', 1), ('-', 4), ('guid', 64)],
    'RTU': [('local_comm', 32), ('remote_comm', 32)],
    'DREQ': [('local_comm', 32), ('remote_comm', 32), ('remote_qpn', 24), ('-', 8)],
    'DREP': [('local_comm', 32), ('remote_comm', 32)],
    'SIDR_REQ': [('request', 32), ('pkey', 16), ('-', 16), ('service', 64)],
    'SIDR_REP': [('request', 32), ('status', 8), ('info_len', 8), ('-', 16), ('qpn', 24), ('-', 8),
                 ('service', 64), ('qkey', 32), ('info', 576)],
    'LAP': [('local_comm', 32), ('remote_comm', 32), ('-', 32), ('remote_qpn', 24), ('remote_timeout', 5),
            ('-', 3), ('-', 32), ('local_lid', 16), ('remote_lid', 16), ('local_gid', ADDRESS),
            ('remote_gid', ADDRESS), ('flow_label', 20), ('-', 4), ('traffic_class', 8), ('hop_limit', 8), ('-', 2),
            ('rate', 6), ('sl', 4), ('subnet_local', 1), ('-', 3), ('ack_timeout', 5), ('-', 3)],
    'APR': [('local_comm', 32), ('remote_comm', 32), ('info_len', 8), ('status', 8), ('-', 16), ('info', 576)],
}
# Before the private data of REQ and SIDR_REQ: annex A11.
IP_CM = [('major', 4), ('minor', 4), ('ip_version', 4), ('-', 4), ('port', 16), ('src', ADDRESS), ('dst', ADDRESS)]


def put(fields, values):
    number, total = 0, 0
    for name, bits in fields:
        number = number << bits | (0 if name == '-' else values.get(name, 0) & ((1 << bits) - 1))
        total += bits
    return number.to_bytes(total // 8, 'big')


def take(fields, data):
    total = sum(bits for _, bits in fields)
    number, values, reserved = int.from_bytes(data[:total // 8], 'big'), {}, 0
    for name, bits in fields:
        total -= bits
        value = number >> total & ((1 << bits) - 1)
        if name == '-':
            reserved |= value
        else:
            values[name] = value
    values['reserved'] = reserved
    return values


def ip_header(port, src, dst):
    """The first 36 bytes of private data; addresses as text."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    return put(IP_CM, {'ip_version': src.version, 'port': port, 'src': int(src), 'dst': int(dst)})


def gid(text):
    """Number of the GID of an address."""
    address = ipaddress.ip_address(text)
    return int(address) | (0xffff << 32 if address.version == 4 else 0)


def make(name, tid, private=b'', head=None, **values):
    """The 256 bytes of a message; `head` has the fields of the MAD header that differ from the default."""
    base = {'base': 1, 'class': 7, 'version': 2, 'method': 3, 'status': 0, 'attribute': NUMBERS.get(name, 0),
            'modifier': 0}
    base.update(head or {})
    mad = struct.pack('!BBBBHHQHHI', base['base'], base['class'], base['version'], base['method'], base['status'], 0,
                      tid, base['attribute'], 0, base['modifier'])
    mad += put(FIELDS[name], values) + private
    return mad[:MAD_BYTES].ljust(MAD_BYTES, b'\0')


def read(mad):
    """(name, fields) of a message; private data is the field 'private'."""
    base, mad_class, version, method, status, specific, tid, attribute, reserved, modifier = \
        struct.unpack_from('!BBBBHHQHHI', mad)
    name = NAMES.get(attribute, hex(attribute))
    values = {'base': base, 'class': mad_class, 'version': version, 'method': method, 'mad_status': status,
              'specific': specific, 'tid': tid, 'modifier': modifier, 'mad_reserved': reserved}
    if name in FIELDS:
        values.update(take(FIELDS[name], mad[24:]))
        values['private'] = mad[24 + sum(bits for _, bits in FIELDS[name]) // 8:]
    return name, values


# ---- frames ----

def icrc(ip, rest):
    masked = bytearray(ip)
    if ip[0] >> 4 == 4:
        masked[1], masked[8], masked[10:12] = 0xff, 0xff, b'\xff\xff'
    else:
        masked[0:4] = bytes([masked[0] | 0x0f]) + b'\xff\xff\xff'
        masked[7] = 0xff
    body = bytearray(rest)
    body[6:8] = b'\xff\xff'
    body[8 + 4] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked) + bytes(body)))


def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(mad, src, dst, macs, psn=0, source_qpn=1, dest_qpn=1, qkey=QKEY):
    """An Ethernet frame; src and dst are addresses as text, macs (destination, source) of 6 bytes."""
    bth = struct.pack('!BBHII', SEND_ONLY, 0x40, 0xffff, dest_qpn, psn & 0xffffff)
    payload = bth + struct.pack('!II', qkey, source_qpn) + mad
    udp = struct.pack('!HHHH', 0xc000, UDP_PORT, 8 + len(payload) + 4, 0)
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if src.version == 4:
        ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp) + len(payload) + 4, 0, 0x4000, 64, 17, 0,
                         src.packed, dst.packed)
        ip = ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:]
        kind = 0x0800
    else:
        ip = struct.pack('!IHBB16s16s', 6 << 28, len(udp) + len(payload) + 4, 17, 64, src.packed, dst.packed)
        kind = 0x86dd
    return b''.join(macs) + struct.pack('!H', kind) + ip + udp + payload + icrc(ip, udp + payload)


def open_frame(data):
    """Returns the fields of a frame with a CM message as a dictionary; None: it has no CM message."""
    at, (kind,) = 14, struct.unpack_from('!H', data, 12)
    vlan = None
    if kind == 0x8100:
        vlan, kind = struct.unpack_from('!HH', data, 14)
        at = 18
    if kind == 0x0800 and data[at + 9] == 17:
        size, src, dst, hops = 20, data[at + 12:at + 16], data[at + 16:at + 20], data[at + 8]
    elif kind == 0x86dd and data[at + 6] == 17:
        size, src, dst, hops = 40, data[at + 8:at + 24], data[at + 24:at + 40], data[at + 7]
    else:
        return None
    udp = at + size
    if len(data) < udp + 28 or struct.unpack_from('!H', data, udp + 2)[0] != UDP_PORT or data[udp + 8] != SEND_ONLY:
        return None
    _, flags, pkey, dest_qpn, psn, qkey, source_qpn = struct.unpack_from('!BBHIIII', data, udp + 8)
    if dest_qpn & 0xffffff != 1:
        return None
    length, = struct.unpack_from('!H', data, udp + 4)
    end = udp + length
    name, fields = read(data[udp + 28:end - 4])
    return {
        'macs': (data[0:6], data[6:12]), 'vlan': vlan, 'src': str(ipaddress.ip_address(src)),
        'dst': str(ipaddress.ip_address(dst)), 'hops': hops, 'flags': flags, 'pkey': pkey,
        'ack_request': psn >> 31, 'psn': psn & 0xffffff, 'qkey': qkey, 'source_qpn': source_qpn & 0xffffff,
        'dest_qpn': dest_qpn & 0xffffff, 'mad_bytes': end - 4 - udp - 28, 'name': name, 'fields': fields,
        'icrc_good': icrc(data[at:udp], data[udp:end - 4]) == data[end - 4:end],
    }


# ---- files ----

PCAP_HEAD = '<IHHiIII'


def write_pcap(path, frames):
    """frames: (seconds, bytes)"""
    with open(path, 'wb') as file:
        file.write(struct.pack(PCAP_HEAD, 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for when, data in frames:
            file.write(struct.pack('<IIII', int(when), int(when % 1 * 1e6), len(data), len(data)) + data)


def read_pcap(path):
    """(seconds, bytes) of each frame."""
    with open(path, 'rb') as file:
        data = file.read()
    magic, = struct.unpack_from('<I', data)
    if magic not in (0xa1b2c3d4, 0xa1b23c4d):
        raise ValueError('%s is no pcap file' % path)
    unit, at = 1e-6 if magic == 0xa1b2c3d4 else 1e-9, 24
    while at + 16 <= len(data):
        seconds, fraction, kept, _ = struct.unpack_from('<IIII', data, at)
        yield seconds + fraction * unit, data[at + 16:at + 16 + kept]
        at += 16 + kept


def read_pcapng(path):
    """The same of a file as softhca-ctl capture writes it: one interface, little-endian, times in ns or us."""
    with open(path, 'rb') as file:
        data = file.read()
    at, unit = 0, 1e-6
    while at + 12 <= len(data):
        kind, size = struct.unpack_from('<II', data, at)
        if at + size > len(data):
            return  # it is being written
        if kind == 1:  # interface: option 9 is the resolution of times
            option = at + 16
            while option + 4 <= at + size - 4:
                code, length = struct.unpack_from('<HH', data, option)
                if code == 9:
                    unit = 10.0 ** -data[option + 4]
                option += 4 + (length + 3) // 4 * 4
        elif kind == 6:  # enhanced packet
            _, high, low, kept = struct.unpack_from('<IIII', data, at + 8)
            yield (high << 32 | low) * unit, data[at + 28:at + 28 + kept]
        at += size
