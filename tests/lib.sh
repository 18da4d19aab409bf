# SPDX-License-Identifier: BSD-3-Clause
# The parts of tests/run. Sourced after config/lib.sh; uses $root, $quick and $filter of tests/run.
#
# Every test case adds one line "pass|fail|skip <tab> name" to the file $results; the stages may run
# in subshells, the count is made from the file.

results_open() {
	results=$1
	: >"$results" || die "cannot write $results"
	: >"$results.said"
}

# Files of this run are in a folder of its own, which goes with the last process that was started here,
# however that ended: each holds the pipe.
own_tmpdir() {
	TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/softhca-run.XXXXXX") || die "no place for temporary files"
	chmod 711 "$TMPDIR"	# clients that are not root find their daemon's socket in it
	export TMPDIR
	exec 8> >(trap '' INT TERM HUP
		exec 9>&-
		cat >/dev/null
		rm -rf "$TMPDIR")
}

record() { printf '%s\t%s\n' "$1" "$2" >>"$results"; }

count() { awk -F '\t' -v what="$1" '$1 == what { n++ } END { print n + 0 }' "$results"; }

names() { awk -F '\t' -v what="$1" '$1 == what { print "  " $2 }' "$results"; }

# Prints the summary and leaves the script.
results_close() {
	local passed failed skipped
	passed=$(count pass)
	failed=$(count fail)
	skipped=$(count skip)
	if [ "$skipped" -gt 0 ]; then
		say "$skipped skipped:"
		names skip
	fi
	if [ $((passed + failed)) -eq 0 ]; then
		warn "no test was run${filter:+; no name contains \"$filter\"}"
		record fail nothing-was-run
		failed=1
	fi
	if [ "$failed" -gt 0 ]; then
		[ -n "$only" ] || cat "$results.said"	# of one test, meson has just printed it
		say "failed:"
		names fail
	fi
	say "$SECONDS s altogether"
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}

# shell pattern, anywhere in the name
matches_filter() {
	# shellcheck disable=SC2053
	[ -z "$filter" ] || [[ $1 == *$filter* ]]
}

# No test may run longer in any stage: meson's limits are multiplied for slow stages, and one test that
# hangs could take up the time of the whole run.
TEST_SECONDS_MAX=900

# run_meson_tests BUILD-DIR TAG TIMEOUT-MULTIPLIER GLOBS MESON-OPTION...: the tests whose names
# match one of the globs (-GLOB: and not this one), with room for a machine that is busy with other
# things: a time-out is for hung tests. meson prints a line per test and the log of each that fails.
run_meson_tests() {
	local dir=$1 tag=$2 multiplier=$3 start=$SECONDS logs=$1/meson-logs/testlog-$2 selected globs
	read -ra globs <<<"$4"
	shift 4
	selected=$(python3 "$root/tests/meson_results.py" select "$dir" "$filter" $quick "${globs[@]}") ||
		{ record fail "$tag-list"; return; }
	if [ -z "$selected" ]; then
		say "tests, $tag: none selected"
		return
	fi
	mapfile -t selected <<<"$selected"
	say "tests, $tag: ${#selected[@]} to run"
	# meson adds the name of a wrapper to that of the log
	rm -f "$logs"*.json "$logs.cpu"
	# two more than there are CPUs: many wait most of the time
	# the lock on descriptor 9 must not survive in a test that does not end
	TIDY_SECONDS=$TEST_SECONDS_MAX TIDY_TIMES=$logs.cpu meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 2)) \
		--timeout-multiplier "$multiplier" --logbase "testlog-$tag" "$@" "${selected[@]}" \
		</dev/null 9>&-
	python3 "$root/tests/meson_results.py" record "$(echo "$logs"*.json)" "$tag" "$results" "${selected[@]}" ||
		record fail "$tag-results"
	say "tests, $tag: $((SECONDS - start)) s, $(python3 "$root/tests/meson_results.py" cpu \
		"$(echo "$logs"*.json)" "$logs.cpu" sum)"
}

# The executables defined below tests/fuzz, as ninja targets.
fuzz_targets() {
	meson introspect --targets "$1" | python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    if target["type"] == "executable" and "/tests/fuzz/" in target["defined_in"]:
        print(os.path.relpath(target["filename"][0], sys.argv[1]))
' "$1"
}

# fuzz_one BUILD-DIR SECONDS TARGET: libFuzzer on a copy of tests/fuzz/corpus/<target name>, so that
# the checkout stays as it is; crashing inputs stay in BUILD-DIR/artifacts.
fuzz_one() {
	local dir=$1 seconds=$2 program=$1/$3 name=${3##*/} corpus rc=0 log
	local options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1)
	corpus=$dir/corpus/$name
	log=$dir/$name.log
	rm -rf "$corpus"
	mkdir -p "$corpus" "$dir/artifacts"
	if [ -d "$root/tests/fuzz/corpus/$name" ]; then
		cp -R "$root/tests/fuzz/corpus/$name/." "$corpus"
	fi
	if [ -f "$root/tests/fuzz/$name.dict" ]; then
		options+=(-dict="$root/tests/fuzz/$name.dict")
	fi
	timeout -k 10 $((seconds * 3 + 60)) "$program" "${options[@]}" \
		-artifact_prefix="$dir/artifacts/$name-" "$corpus" >"$log" 2>&1 </dev/null 9>&- || rc=$?
	if [ $rc -ne 0 ]; then
		tail -n 100 "$log"
		echo "$name FAIL (exit status $rc); again with: $program <file in $dir/artifacts>"
		record fail "$name"
		return
	fi
	echo "$name OK ($(awk '/number_of_executed_units/ { print $2 }' "$log") inputs)"
	record pass "$name"
}

fuzz_all() {
	local dir=$1 seconds=$2 target running=()
	shift 2
	export ASAN_OPTIONS=detect_leaks=1
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	export LSAN_OPTIONS="suppressions='$root/tests/lsan.supp':print_suppressions=0"
	say "fuzz: $# targets, $seconds s each, one per CPU at a time"
	for target in "$@"; do
		matches_filter "${target##*/}" || continue
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
			wait -n
		done
		fuzz_one "$dir" "$seconds" "$target" &
		running+=($!)
	done
	# these, and not the keeper of the folder of temporary files (own_tmpdir)
	[ ${#running[@]} -eq 0 ] || wait "${running[@]}"
}
