# SPDX-License-Identifier: BSD-3-Clause
"""Judges captures of connection management: the fields that cm_mad.py and tshark read. Functions return complaints."""
import os
import subprocess

import cm_mad

# The fields that tshark 4.0 reads of each message, without flow label and rate: it reads them from wrong bits.
TSHARK = {
    'REQ': {'local_comm': 'req', 'service': 'req.serviceid', 'guid': 'req.localcaguid', 'qkey': 'req.localqkey',
            'qpn': 'req.localqpn', 'responder_resources': 'req.responderres', 'initiator_depth': 'req.initdepth',
            'remote_timeout': 'req.remoteresptout', 'transport': 'req.transpsvctype',
            'flow_control': 'req.e2eflowctrl', 'psn': 'req.startpsn', 'local_timeout': 'req.localresptout',
            'retry': 'req.retrcount', 'pkey': 'req.pkey', 'mtu': 'req.pppmtu', 'rnr_retry': 'req.rnrretrcount',
            'cm_retries': 'req.maxcmretr', 'srq': 'req.srq', 'ext_transport': 'req.ext_transport',
            'primary_local_lid': 'req.prim_locallid', 'primary_remote_lid': 'req.prim_remotelid',
            'primary_traffic_class': 'req.prim_tfcclass', 'primary_hop_limit': 'req.prim_hoplim',
            'primary_sl': 'req.prim_sl', 'primary_subnet_local': 'req.prim_subnetlocal',
            'primary_ack_timeout': 'req.prim_localacktout'},
    'REP': {'local_comm': 'rep', 'remote_comm': 'rep.remotecommid', 'qpn': 'rep.localqpn', 'psn': 'rep.startpsn',
            'responder_resources': 'rep.respres', 'initiator_depth': 'rep.initdepth',
            'ack_delay': 'rep.tgtackdelay', 'failover': 'rep.failoveracc', 'flow_control': 'rep.e2eflowctrl',
            'rnr_retry': 'rep.rnrretrcount', 'srq': 'rep.srq', 'guid': 'rep.localcaguid'},
    'RTU': {'local_comm': 'rtu.localcommid', 'remote_comm': 'rtu.remotecommid'},
    'REJ': {'local_comm': 'rej.localcommid', 'remote_comm': 'rej.remotecommid', 'message': 'rej.msgrej',
            'info_len': 'rej.rejinfolen', 'reason': 'rej.reason'},
    'DREQ': {'local_comm': 'dreq.localcommid', 'remote_comm': 'dreq.remotecommid',
             'remote_qpn': 'req.remoteqpneecn'},
    'DREP': {'local_comm': 'drsp.localcommid', 'remote_comm': 'drsp.remotecommid'},
}
DATAGRAM = {'frame': 'frame.number', 'malformed': '_ws.malformed', 'dest_qpn': 'infiniband.bth.destqp',
            'source_qpn': 'infiniband.deth.srcqp', 'tid': 'infiniband.mad.transactionid'}


def tshark_rows(path, names):
    """A dictionary for each frame: the values that tshark prints for these fields."""
    run = subprocess.run(['tshark', '-n', '-r', path, '-T', 'fields', *[x for n in names for x in ('-e', n)]],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', errors='replace', timeout=60)
    if run.returncode:
        raise RuntimeError('tshark: ' + run.stderr)
    for line in run.stdout.splitlines():
        yield dict(zip(names, line.split('\t')))


def number(text):
    return int(text, 16 if text.startswith('0x') else 10) if text else None


def compare_message(where, message, row):
    fields = dict(message['fields'], source_qpn=message['source_qpn'], dest_qpn=message['dest_qpn'])
    names = {ours: 'infiniband.cm.' + theirs for ours, theirs in TSHARK.get(message['name'], {}).items()}
    names.update({ours: DATAGRAM[ours] for ours in ('source_qpn', 'dest_qpn', 'tid')})
    for ours, theirs in names.items():
        if row.get(theirs) and number(row[theirs]) != fields[ours]:
            yield '%s%s is %#x, tshark reads %s' % (where, ours, fields[ours], row[theirs])
        elif not row.get(theirs):
            yield '%s%s is %#x, tshark reads none' % (where, ours, fields[ours])


def understood(message):
    """Whether tshark takes it for connection management of a version it reads."""
    fields = message['fields']
    return (fields['base'], fields['class'], fields['version'], fields['method']) == (1, 7, 2, 3) and \
        message['mad_bytes'] == cm_mad.MAD_BYTES and message['name'] in cm_mad.FIELDS


def compare_with_tshark(path):
    names = list(DATAGRAM.values()) + sorted({'infiniband.cm.' + field for fields in TSHARK.values()
                                              for field in fields.values()})
    bad = []
    for (_, data), row in zip(cm_mad.read_pcap(path), tshark_rows(path, names)):
        message = cm_mad.open_frame(data)
        where = '%s:%s: %s: ' % (os.path.basename(path), row['frame.number'], message and message['name'])
        if message is None or not understood(message):
            continue
        if row['_ws.malformed']:
            bad.append(where + 'malformed to tshark')
        bad += compare_message(where, message, row)
    return bad


def judge_message(message):
    """Complaints about a message that a connection manager sends over RoCE."""
    for field, wanted in (('icrc_good', True), ('mad_bytes', cm_mad.MAD_BYTES), ('source_qpn', 1), ('dest_qpn', 1),
                          ('qkey', cm_mad.QKEY), ('pkey', 0xffff), ('hops', 64)):
        if message[field] != wanted:
            yield '%s is %s, not %s' % (field, message[field], wanted)
    fields = message['fields']
    for field, wanted in (('base', 1), ('class', 7), ('version', 2), ('method', 3), ('mad_status', 0), ('modifier', 0),
                          ('specific', 0), ('mad_reserved', 0), ('reserved', 0)):
        if fields.get(field, 0) != wanted:
            yield '%s is %#x, not %#x' % (field, fields[field], wanted)


def judge(path):
    """(complaints, {(sender, message): how many})"""
    bad, counts = [], {}
    for index, (_, data) in enumerate(cm_mad.read_pcap(path), 1):
        message = cm_mad.open_frame(data)
        if message is None:
            continue
        where = '%s:%d: %s of %s: ' % (os.path.basename(path), index, message['name'], message['src'])
        key = message['src'], message['name']
        counts[key] = counts.get(key, 0) + 1
        bad += [where + text for text in judge_message(message)]
    return bad, counts


def tags(path):
    """VLANs of the messages, None: untagged."""
    messages = (cm_mad.open_frame(data) for _, data in cm_mad.read_pcap(path))
    return {message['vlan'] & 0xfff if message['vlan'] is not None else None for message in messages if message}
