//! What the sample workload says of itself, and what that says of a window.

use flopwatch_system_tests::workload::bounds;

const LOG: &str = "started pid=1\npid=1 t=100 ranges=10\npid=7 t=110 ranges=5\npid=1 t=200 ranges=20\npid=7 t=210 ranges=9\npid=1 t=300 ranges=30\npid=7 t=310 ranges=14\n";

#[test]
fn the_lines_around_a_window_bound_what_it_holds() {
    // Within 150..=260: process 1 between 0 (200..200) and 20 (100..300), process 7 between 0
    // and 9.
    assert_eq!(bounds(LOG, 150, 260), (0, 29));
    assert_eq!(bounds(LOG, 100, 300), (20 + 4, 20 + 14));
}

#[test]
fn a_window_without_lines_holds_nothing() {
    assert_eq!(bounds("", 0, 100), (0, 0));
}
