//! Every recipe that CI runs, runnable by hand.

fn main() {}
