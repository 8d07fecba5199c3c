#!/bin/sh
# Runs the check with what lies beside it; options go to the program (--help lists them).
here=$(cd "$(dirname "$0")" && pwd)
export FLOPWATCH_CUDA_KERNELS="$here/libflopwatch_kernels.so"
for ncu in /usr/local/cuda/bin/ncu /opt/nvidia/nsight-compute/*/ncu; do
    if [ -z "$FLOPWATCH_NCU" ] && [ -x "$ncu" ] && ! command -v ncu >/dev/null; then export FLOPWATCH_NCU="$ncu"; fi
done
exec "$here/flopwatch-gpu-check" "$@"
