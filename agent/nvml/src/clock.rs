//! The clock that dates samples, and whatever is compared with them.

use std::time::{SystemTime, UNIX_EPOCH};

/// `CLOCK_REALTIME` in ns since the Unix epoch; 0 before it.
pub fn utc_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
