//! Whole-system tests on a real cluster.
