// CUPTI as its documentation shows it, without the tracer: whether a libcupti works with a driver.
#pragma once

// Opens the libcupti at a path, has kernels launched while it records, and says on standard output
// what each call answered and how many kernels came with their times.
void bare(const char *path, long launches, void (*launch)(long));
