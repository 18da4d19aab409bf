# SPDX-License-Identifier: BSD-3-Clause
"""Names that libraries define. Arguments: libsofthca, libsofthca-urma, and the header.

libsofthca has none of URMA; libsofthca-urma has those that the header declares, and no others.
"""
import re
import subprocess
import sys


def defined(library):
    lines = subprocess.run(['nm', '-D', '--defined-only', library], stdout=subprocess.PIPE,
                           check=True, encoding='utf-8').stdout.splitlines()
    # without the names of the version nodes themselves
    return {line.split()[-1].partition('@')[0] for line in lines if line.split()[-2] != 'A'}


def main():
    verbs, urma, header = sys.argv[1:]
    with open(header, encoding='utf-8') as file:
        declared = set(re.findall(r'^SOFTHCA_API [^(]*?(\w+)\(', file.read(), re.M))
    foreign = {name for name in defined(verbs) if 'urma' in name}
    complaints = [f'{verbs} defines {name}' for name in sorted(foreign)]
    complaints += [f'{name} is declared only' for name in sorted(declared - defined(urma))]
    complaints += [f'{name} is not declared' for name in sorted(defined(urma) - declared)]
    assert len(declared) > 50, declared
    print('\n'.join(complaints))
    sys.exit(len(complaints) != 0)


main()
