#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The drop-in libibverbs.so.1 against Debian's: names and versions, and results of pure functions.

test_names.py LIBRARY PRELOAD [unittest arguments]
"""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

OURS, PRELOAD = [os.path.abspath(word) for word in sys.argv[1:3]]

# Names in rdma-core 65 that Debian 12 (44) lacks
LATER = {
    'IBVERBS_1.15': {'ibv_alloc_dmah', 'ibv_dealloc_dmah', 'ibv_reg_mr_ex'},
    'IBVERBS_1.16': {'ibv_dm_export_dmabuf_fd', 'ibv_query_port_speed'},
    'IBVERBS_1.17': {'ibv_alloc_buf', 'ibv_free_buf', 'ibv_reg_buf_mr'},
    'IBVERBS_1.18': {'_ibv_query_comp_cntr_caps', 'ibv_create_comp_cntr', 'ibv_destroy_comp_cntr',
                     'ibv_export_buf_dmabuf_fd', 'ibv_inc_comp_cntr', 'ibv_inc_err_comp_cntr',
                     'ibv_qp_attach_comp_cntr', 'ibv_read_comp_cntr', 'ibv_read_err_comp_cntr',
                     'ibv_set_comp_cntr', 'ibv_set_err_comp_cntr'},
}
# The nodes of the interface to providers: releases 44 to 56, 57, 59, 64 and 65
PRIVATE = ['IBVERBS_PRIVATE_%d' % number for number in (34, 57, 59, 64, 65)]
PRIVATE_LATER = {'ibv_cmd_alloc_dmah', 'ibv_cmd_create_comp_cntr', 'ibv_cmd_create_cq_ex2',
                 'ibv_cmd_destroy_comp_cntr', 'ibv_cmd_export_dmabuf_fd', 'ibv_cmd_free_dmah',
                 'ibv_cmd_inc_comp_cntr', 'ibv_cmd_inc_err_comp_cntr',
                 'ibv_cmd_qp_attach_comp_cntr', 'ibv_cmd_query_comp_cntr_caps',
                 'ibv_cmd_query_port_speed', 'ibv_cmd_read_comp_cntr',
                 'ibv_cmd_read_err_comp_cntr', 'ibv_cmd_reg_mr_ex', 'ibv_cmd_set_comp_cntr',
                 'ibv_cmd_set_err_comp_cntr', 'ibv_dmabuf_heap_alloc',
                 'ibv_dmabuf_heap_cc_shared_init', 'ibv_dmabuf_heap_destroy',
                 'ibv_dmabuf_heap_free', 'ibv_wr_opcode_str'}

PURE = '''
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
said = {}
for name in ('ibv_wc_status_str', 'ibv_port_state_str', 'ibv_event_type_str', 'ibv_node_type_str'):
    call = getattr(lib, name)
    call.restype = ctypes.c_char_p
    said[name] = [call(i).decode() for i in range(-3, 40)]
for name in ('ibv_rate_to_mult', 'ibv_rate_to_mbps', 'mult_to_ibv_rate'):
    said[name] = [getattr(lib, name)(i) for i in range(-3, 600)]
mbps = [i for i in said['ibv_rate_to_mbps'] if i > 0]
said['mbps_to_ibv_rate'] = [lib.mbps_to_ibv_rate(i + d) for i in mbps for d in (-1, 0, 1)]
json.dump(said, sys.stdout)
'''


def theirs():
    """The library of the system, whatever LD_LIBRARY_PATH says."""
    listed = subprocess.run(['/sbin/ldconfig', '-p'], stdout=subprocess.PIPE, encoding='utf-8',
                            check=True).stdout
    paths = re.findall(r'libibverbs\.so\.1 \(.*?\) => (\S+)', listed)
    return paths[0] if paths else None


def table(option, path):
    return subprocess.run(['readelf', option, '-W', path], stdout=subprocess.PIPE,
                          encoding='utf-8', check=True).stdout


def names(path):
    """name@version or name@@version, and whether it is data, for each definition of a library."""
    rows = [line.split() for line in table('--dyn-syms', path).splitlines()]
    return {(row[7], row[3] == 'OBJECT') for row in rows
            if len(row) > 7 and row[6] != 'UND' and row[4] in ('GLOBAL', 'WEAK')}


def nodes(path):
    """Each version node with its parents."""
    text = table('-V', path).split('Version needs')[0]
    found = []
    for line in text.splitlines():
        node = re.search(r'Name: (IBVERBS\S+)', line)
        parent = re.search(r'Parent 1: (\S+)', line)
        if node:
            found.append([node.group(1)])
        elif parent:
            found[-1].append(parent.group(1))
    return sorted(found)


class Names(unittest.TestCase):
    def setUp(self):
        self.theirs = theirs()
        if self.theirs is None:
            self.skipTest('there is no libibverbs (package libibverbs1)')

    def test_versions(self):
        """All names of the system's library, and no others except those of later ones."""
        ours, theirs = ({(name.replace('@@', '@'), data) for name, data in names(path)}
                        for path in (OURS, self.theirs))
        self.assertEqual(theirs - ours, set())
        self.assertEqual([node for node in nodes(self.theirs) if node not in nodes(OURS)], [])
        more = {name for name, _ in ours - theirs if '@IBVERBS_PRIVATE' not in name}
        known = {'%s@%s' % (name, node) for node, has in LATER.items() for name in has}
        self.assertEqual(more - known - set(LATER) - set(PRIVATE), set())

    def test_later(self):
        """The nodes and names of rdma-core 65, whichever release the system has."""
        at = {name.replace('@@', '@') for name, _ in names(OURS)}
        for node, has in LATER.items():
            self.assertEqual({name for name in at if name.endswith('@' + node)},
                             {'%s@%s' % (name, node) for name in has})
        below = 'IBVERBS_1.14'
        for node in LATER:
            self.assertIn([node, below], nodes(OURS))
            below = node
        self.assertEqual(len({name.split('@')[0] for name in at
                              if '@' in name and '@IBVERBS_PRIVATE' not in name}), 76 + 19)

    def test_private(self):
        """Each node for providers has the names of every release at its own."""
        at = {name.replace('@@', '@') for name, _ in names(OURS)}
        first = None
        for node in PRIVATE:
            has = {name.split('@')[0] for name in at if name.endswith('@' + node)}
            own = 'verbs_register_driver_' + node.rsplit('_', 1)[1]
            self.assertIn(own, has)
            first = first or has - {own}
            self.assertEqual(has - {own}, first)
        self.assertGreaterEqual(first, PRIVATE_LATER)
        self.assertEqual(len(first), 70 + len(PRIVATE_LATER))

    def test_libc(self):
        """No name of a C library later than that of Debian 12, so that programs there may load them."""
        said = subprocess.run(['ldd', OURS], stdout=subprocess.PIPE, encoding='utf-8', check=True).stdout
        client = re.search(r'libsofthca\.so\.0 => (\S.*) \(', said).group(1)
        for path in OURS, PRELOAD, client:
            needs = table('-V', path).split('Version needs')[1]
            found = [[int(part) for part in version.split('.')]
                     for version in re.findall(r'Name: GLIBC_([\d.]+)', needs)]
            self.assertLessEqual(max(found), [2, 36], path)

    def test_soname(self):
        self.assertIn('[libibverbs.so.1]', table('-d', OURS))
        self.assertNotIn('[libibverbs.so.1]', table('-d', PRELOAD))

    def test_preload(self):
        """Every present name that programs call, without a version, and no other."""
        public = {name.split('@@')[0] for name, _ in names(OURS)
                  if '@@' in name and 'PRIVATE' not in name}
        self.assertEqual({name for name, _ in names(PRELOAD)},
                         public | {'ibv_query_gid_type', 'ibv_wr_opcode_str'})

    def test_loads(self):
        """Libraries of the system that need libibverbs find all they need: providers, librdmacm."""
        folder = os.path.dirname(self.theirs)
        paths = [path for name in ('lib*.so.1', 'libibverbs/*.so')
                 for path in glob.glob(os.path.join(folder, name))
                 if '[libibverbs.so.1]' in table('-d', path) and
                 not os.path.basename(path).startswith('libibverbs.so')]
        self.assertNotEqual(paths, [])
        for path in paths:
            said = subprocess.run(['ldd', '-r', path], stdout=subprocess.PIPE, check=True,
                                  stderr=subprocess.STDOUT, encoding='utf-8',
                                  env={**os.environ, 'LD_LIBRARY_PATH': os.path.dirname(OURS)})
            self.assertIn(os.path.dirname(OURS) + '/libibverbs.so.1', said.stdout)
            self.assertNotRegex(said.stdout, 'undefined symbol|not found|no version information')

    def test_pure(self):
        said = [json.loads(subprocess.run([sys.executable, '-c', PURE, path], check=True,
                                          stdout=subprocess.PIPE).stdout)
                for path in (OURS, self.theirs)]
        self.assertEqual(said[0], said[1])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
