//! Columnar model of GPU captures: readers, transform, timeline file, summary.
