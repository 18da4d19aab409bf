# SPDX-License-Identifier: BSD-3-Clause
"""tests/unit against src.

Each folder of src with C files has a folder with tests at the same path in tests/unit; NO_UNIT has the others,
with the reason. Each folder of tests there belongs to one of src, or of apps, and the names of its tests begin
with "unit-" and its path; "device" is left out below src/device.
"""
import os
import re

UNIT = 'tests/unit'

NO_UNIT = {
    'src/verbs': 'programs reach its functions only as symbols of libibverbs: tests/verbs calls each of them',
}


def prefix(room):
    return 'unit-' + re.sub(r'^device/', '', room).replace('/', '-')


def names(tree, folder):
    """Names of tests in the meson.build of a folder; of one that is computed the beginning."""
    return re.findall(r"'(unit-[\w-]*)'", tree.text(os.path.join(folder, 'meson.build')))


def complaints(tree):
    rooms = {os.path.dirname(path) for path in tree.c_files if path.startswith('src/')}
    tested = {os.path.dirname(path) for path in tree.c_files if re.match(UNIT + r'/.*/test_\w+\.c$', path)}
    for room in sorted(rooms):
        folder = UNIT + room[len('src'):]
        if folder in tested and room in NO_UNIT:
            yield 'tests/mirror.py: NO_UNIT has %s, which has tests in %s' % (room, folder)
        if folder not in tested and room not in NO_UNIT:
            yield '%s: no unit test in %s' % (room, folder)
    for room in sorted(NO_UNIT.keys() - rooms):
        yield 'tests/mirror.py: NO_UNIT has %s, which is not in src' % room
    for folder in sorted(tested):
        room = folder[len(UNIT) + 1:]
        if 'src/' + room not in rooms and room != 'apps':
            yield '%s: not the path of a folder of src' % folder
        for name in names(tree, folder):
            if not re.match(prefix(room) + r'(?:-|$)', name):
                yield '%s/meson.build: the name %s does not begin with %s' % (folder, name, prefix(room))
