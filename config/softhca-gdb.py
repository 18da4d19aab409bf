# SPDX-License-Identifier: BSD-3-Clause
"""Pretty printers of gdb for QPs, request records and CQEs.

(gdb) source config/softhca-gdb.py
(gdb) print pipe->qp[5]                 one line per stage, instead of 100 fields
(gdb) print $window(pipe, 5)            the requests of QP index 5 that have no completion yet
(gdb) print *$record(pipe, ref)         a record by its reference
(gdb) print /r pipe->qp[5]              every field, as without this script

pipe: a struct hca_pipe, as stages have one; of a struct hca: &hca->pipe[0].
"""
import gdb
import gdb.printing

FULL = 0x80000000  # HCA_RECREF_FULL


def name(enumeration, value):
    """The name in an enumeration without the common prefix; the number if it has no name."""
    try:
        fields = gdb.lookup_type('enum ' + enumeration).fields()
    except gdb.error:
        return str(value)
    prefix = '_'.join(fields[0].name.split('_')[:2]) + '_'
    for field in fields:
        if field.enumval == value:
            return field.name[len(prefix):] if field.name.startswith(prefix) else field.name
    return str(value)


def flags(enumeration, value):
    try:
        fields = gdb.lookup_type('enum ' + enumeration).fields()
    except gdb.error:
        return hex(value)
    names = [field.name.split('_', 2)[2] for field in fields if field.enumval & value]
    return '|'.join(names) or '0'


class Qp:
    """struct hca_qp"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        cfg = self.value['cfg']
        if int(cfg['local_qpn']) == 0:
            return 'no QP'
        return 'QP %#08x %s %s, peer %#08x, life %d' % (
            int(cfg['local_qpn']), name('hca_service', int(cfg['service'])),
            name('hca_qp_state', int(cfg['state'])), int(cfg['remote_qpn']), int(cfg['generation']))

    def children(self):
        return self.lines().items() if int(self.value['cfg']['local_qpn']) else ()

    def lines(self):
        parser, req_tx, req_rx, ee, encap = (
            self.value[line] for line in ('parser', 'req_tx', 'req_rx', 'ee', 'encap'))
        una = int(self.value['sq_una'])
        head, tail = int(parser['head']), una >> 32
        return {
            'window': '%d requests: tail %d, next %d, head %d, freed %d' % (
                (head - tail) & 0xffffffff, tail, int(self.value['sq_next']), head, int(self.value['sq_freed'])),
            'requester': 'una_psn %d, next_psn %d, max_psn %d, packet %d of the request, '
                         'flags %#x' % (una & 0xffffffff, int(req_tx['next_psn']), int(req_tx['max_psn']),
                                        int(req_tx['pkt']), int(req_tx['flags'])),
            'recovery': 'retries %d of %d, RNR %d of %d, timer %s, rewind to %d (%s)' % (
                int(req_rx['retries']), int(self.value['cfg']['retry_cnt']),
                int(req_rx['rnr_retries']), int(self.value['cfg']['rnr_retry']),
                'armed' if int(req_rx['timer_armed']) else 'off', int(req_rx['rewind']) & 0xffffff,
                name('hca_again', int(req_rx['rewind']) >> 24 & 0xff)),
            'responder': 'epsn %d, msn %d, %d bytes of the message left, flags %#x, '
                         'jobs waiting %d' % (int(ee['epsn']), int(ee['msn']), int(ee['msg_left']),
                                              int(ee['flags']), int(ee['job_pending'])),
            'encap': 'descriptors %d of %d done, %d frames, %d bytes' % (
                int(encap['req_done_seq']), int(req_tx['desc_seq']), int(encap['tx_packets']),
                int(encap['tx_bytes'])),
        }


class Record:
    """struct hca_record, alone or in front of a full one"""

    def __init__(self, value):
        fields = [field.name for field in value.type.strip_typedefs().fields()]
        self.record = value['r'] if 'r' in fields else value

    def to_string(self):
        r = self.record
        have = int(r['flags'])
        text = '%s len %d WQE %d' % (name('hca_op', int(r['op'])), int(r['len']), int(r['wqe_index']))
        if have & 0x20:  # HCA_REC_SENT
            text += ' PSN %d..%d' % (int(r['psn']), (int(r['psn']) + max(int(r['npsn']), 1) - 1) & 0xffffff)
        else:
            text += ' not sent'
        if int(r['rkey']):
            text += ' to %#x key %#x' % (int(r['raddr']), int(r['rkey']))
        if int(r['syndrome']):
            text += ' fails with ' + name('hca_synd', int(r['syndrome']))
        return '%s [%s]' % (text, flags('hca_record_flag', have))


class Cqe:
    """struct hca_cqe, both forms"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        v = self.value
        opcode, sent = int(v['opcode']), int(v['is_send'])
        where = '%s %#08x WQE at %d' % ('SQ of' if sent else 'RQ of', int(v['my_qpn']), int(v['wqe']))
        owner = ', not written yet' if int(v['owner']) & 0x80 else ''
        if opcode >= 0xfe:
            return 'CQE %s: %s%s' % (where, name('hca_synd', int(v['imm']) & 0xff), owner)
        what = name('hca_op', opcode) if sent else 'BTH opcode %#04x' % opcode
        return 'CQE %s: %s, %d bytes%s' % (where, what, int(v['byte_cnt']), owner)


class RecordOf(gdb.Function):
    """$record(pipe, ref): pointer to the record with a reference."""

    def __init__(self):
        super().__init__('record')

    def invoke(self, hca, ref):
        full = int(ref) & FULL
        kind = gdb.lookup_type('struct hca_record_full' if full else 'struct hca_record').pointer()
        pools = hca['records'][int(gdb.parse_and_eval('HCA_WIRE_ROCE'))]
        return pools['full' if full else 'small']['mem'].cast(kind) + (int(ref) & ~FULL)


class Window(gdb.Function):
    """$window(pipe, index): the requests of a QP between tail and head, one a line."""

    def __init__(self):
        super().__init__('window')

    def invoke(self, hca, index):
        qp = hca['qp'][int(index)]
        parser = qp['parser']
        tail, head = int(qp['sq_una']) >> 32, int(parser['head'])
        lines = []
        for cursor in range(tail, tail + ((head - tail) & 0xffffffff)):
            ref = parser['window'][cursor & int(parser['window_mask'])]
            record = RecordOf.invoke(None, hca, ref).dereference()
            lines.append('%d: %s' % (cursor & 0xffffffff, Record(record).to_string()))
        return '\n'.join(lines) or 'empty'


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter('softhca')
    printers.add_printer('qp', '^hca_qp$', Qp)
    printers.add_printer('record', '^hca_record(_full)?$', Record)
    printers.add_printer('cqe', '^hca_cqe$', Cqe)
    gdb.printing.register_pretty_printer(gdb.current_objfile(), printers, replace=True)
    RecordOf()
    Window()


register()
