#!/bin/sh
# Tries the CUDA tracer, with what lies beside this; options go to the program (--help lists them).
here=$(cd "$(dirname "$0")" && pwd)
export FLOPWATCH_CUDA_KERNELS="$here/libflopwatch_kernels.so"
exec "$here/flopwatch-gpu-check" tracer "$@"
