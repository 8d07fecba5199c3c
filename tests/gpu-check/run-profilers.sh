#!/bin/sh
# Records programs by the agent's profilers, with what lies beside this; options go to the program (--help lists them).
here=$(cd "$(dirname "$0")" && pwd)
export FLOPWATCH_CUDA_KERNELS="$here/libflopwatch_kernels.so"
for ncu in /usr/local/cuda/bin/ncu /opt/nvidia/nsight-compute/*/ncu; do
    if [ -z "$FLOPWATCH_NCU" ] && [ -x "$ncu" ] && ! command -v ncu >/dev/null; then export FLOPWATCH_NCU="$ncu"; fi
done
exec "$here/flopwatch-gpu-check" profilers "$@"
