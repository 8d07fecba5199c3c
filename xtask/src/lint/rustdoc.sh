#!/bin/sh
# Stands in rustdoc's place in `cargo test --doc`: documents the library, where rustdoc would run the examples in it. Cargo then
# names what was compiled for the tests; `cargo doc` would have every dependency checked anew.
set -eu
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case $argument in
    --test) ;;
    --test-run-directory)
        shift
        count=$((count - 1))
        ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$FLOPWATCH_RUSTDOC" "$@" --document-private-items --deny warnings --out-dir "$FLOPWATCH_DOCUMENTATION"
