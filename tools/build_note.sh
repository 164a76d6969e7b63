#!/usr/bin/env bash
# Says what building the wheel of a profile costs before it starts: the crate itself is the last line of cargo's, and the longest.
case "$1" in
dev) what="for tests: debug assertions on" first=8 again="20 to 40 s" ;;
quick) what="optimised, without link-time optimisation" first=5 again="2 minutes" ;;
*) what="what ships: link-time optimisation on one core" first=12 again="9 minutes" ;;
esac
if [ -d "target/wheels-$1" ]; then time=$again; else time="some $first minutes on two idle cores, once"; fi
echo "== the wheel of profile '$1' ($what): $time; the crate rustgrad takes most of it"
