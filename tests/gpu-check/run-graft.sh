#!/bin/sh
# Grafts programs and captures them, with what lies beside this; options go to the program (--help lists them).
here=$(cd "$(dirname "$0")" && pwd)
export FLOPWATCH_CUDA_KERNELS="$here/libflopwatch_kernels.so"
exec "$here/flopwatch-gpu-check" graft "$@"
