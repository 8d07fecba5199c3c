//! Caches of what the operator remembers.

use std::hash::Hash;

use moka::policy::EvictionPolicy;
use moka::sync::{Cache, CacheBuilder};

/// A cache of about `capacity` entries. Where a further one comes, the one that was used longest
/// ago goes; the policy that moka has by default may turn the further one away.
pub(crate) fn lru<K, V>(capacity: u64) -> CacheBuilder<K, V, Cache<K, V>>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(capacity)
        .eviction_policy(EvictionPolicy::lru())
}
