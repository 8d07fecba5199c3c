// Written by `cargo xtask codegen` from the table of profilers; a test fails when it drifts.

/** How the names of profilers' files end among a capture's artifacts. */
export const RAW_ENDINGS = [
  "cuda-trace",
  "ncu-rep",
  "nsys-rep",
  "pb",
  "ring",
  "tar"
] as const;
