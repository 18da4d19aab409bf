# SPDX-License-Identifier: BSD-3-Clause
"""The manual page of a program from a template, whose line @options@ becomes what --help says.

option_page.py TEMPLATE PROGRAM OUTPUT
"""
import re
import subprocess
import sys

OPTION = re.compile(r'^ +--([a-z0-9-]+)(?: ([A-Z][A-Z:,]*))? +(\S.*)$')


def described(text):
    text = re.sub(r'\[(.*?)\]', r'(default: \1)', text).rstrip('.')
    return ('\\&' if text[0] in ".'" else '') + text.replace('\\', '\\\\') + '.'


def main():
    template, program, output = sys.argv[1:]
    said = subprocess.run([program, '--help'], stdout=subprocess.PIPE, encoding='utf-8', timeout=60,
                          check=True).stdout
    lines = []
    for match in filter(None, map(OPTION.match, said.splitlines())):
        name, argument, text = match.groups()
        lines.append('.It Fl -%s%s' % (name, ' Ar ' + argument if argument else ''))
        lines.append(described(text))
    if len(lines) < 6:
        sys.exit('%s --help names no options' % program)
    with open(template, encoding='utf-8') as file:
        page = file.read()
    with open(output, 'w', encoding='utf-8') as file:
        file.write(page.replace('@options@', '\n'.join(lines)))


main()
