//! A program with a known number of NVTX ranges, threads and processes.

fn main() {}
