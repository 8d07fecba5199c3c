// The program's kernels, in the text that every driver from CUDA 10 on compiles itself.
#pragma once

static const char KERNELS[] =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    // Adds one to a number: what the GPU says it ran.
    ".visible .entry flopwatch_kernel_count(.param .u64 counter)\n"
    "{\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [counter];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    mov.u64 %rd3, 1;\n"
    "    red.global.add.u64 [%rd2], %rd3;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry flopwatch_kernel_empty()\n"
    "{\n"
    "    ret;\n"
    "}\n"
    // Runs for so many ns.
    ".visible .entry flopwatch_kernel_spin(.param .u64 ns)\n"
    "{\n"
    "    .reg .b64 %rd<5>;\n"
    "    .reg .pred %p<2>;\n"
    "    ld.param.u64 %rd1, [ns];\n"
    "    mov.u64 %rd2, %globaltimer;\n"
    "AGAIN:\n"
    "    mov.u64 %rd3, %globaltimer;\n"
    "    sub.u64 %rd4, %rd3, %rd2;\n"
    "    setp.lt.u64 %p1, %rd4, %rd1;\n"
    "    @%p1 bra AGAIN;\n"
    "    ret;\n"
    "}\n";
