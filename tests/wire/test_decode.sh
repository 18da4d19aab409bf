#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_decode.sh DECODE CAPTURE: decode must refuse damaged frames. CAPTURE is rc_send.pcap: 24
# bytes of file header, 16 of record header, then the first frame.
set -eu
decode=$1
capture=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# patch NAME OFFSET OCTAL: a copy with one byte of the capture replaced
patch() {
	cp "$capture" "$dir/$1"
	chmod u+w "$dir/$1"
	printf "\\$3" | dd of="$dir/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

refuse() {
	if "$decode" "$dir/$1" >"$dir/out" 2>&1; then
		echo "decode took $1"
		exit 1
	fi
	if ! grep -q "$2" "$dir/out"; then
		echo "decode did not say '$2' about $1:"
		cat "$dir/out"
		exit 1
	fi
}

"$decode" "$capture" >/dev/null

patch icrc 91 252			# a PSN byte: 40 + 14 + 20 + 8 + 9
refuse icrc 'WRONG'
patch not_roce 76 000			# UDP destination port
refuse not_roce 'NOT_ROCE'
patch opcode 82 037
refuse opcode 'OPCODE'
patch fragment 60 040
refuse fragment 'FRAGMENT'
patch magic 0 000
refuse magic 'Invalid argument'
head -c 100 "$capture" >"$dir/cut"
refuse cut 'ends inside record'
: >"$dir/empty"
refuse empty 'Invalid argument'
refuse missing 'No such file'
