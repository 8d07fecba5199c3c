//! Lists of results that end at a parameter's limit.

use flopwatch_model::{count, index};

/// Leaves the first `limit` items of `list`; gives how many others there were.
pub(crate) fn cut<T>(list: &mut Vec<T>, limit: u32) -> u64 {
    let left_out = list.len().saturating_sub(index(limit));
    list.truncate(index(limit));
    count(left_out)
}
