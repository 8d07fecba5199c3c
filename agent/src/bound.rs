//! How much a collection may write, and which limit says so.

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use serde::{Deserialize, Serialize};

/// Bytes that a collection takes at its most for each byte that it is bounded to: the profiler
/// writes its streams, at the stop the raw capture beside them, and goes on writing until it has
/// heard of the stop.
const PEAK_FACTOR: u64 = 3;
/// Smallest bound with which a collection is begun.
const MIN_BOUND_BYTES: u64 = 1 << 20;

/// Most bytes that a collection may write until it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Most bytes that the collection may write.
    pub bytes: u64,
    /// Limit that the bound comes from.
    pub by: BoundBy,
}

/// What bounds a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoundBy {
    /// The agent's own limit.
    Agent,
    /// What the pod's limit of ephemeral storage leaves.
    Pod,
    /// What the disk has free.
    Disk,
}

impl Bound {
    /// The agent's own limit.
    pub fn by_agent(bytes: u64) -> Self {
        let by = BoundBy::Agent;
        Self { bytes, by }
    }

    /// The least of the agent's own limit, of the room that the pod has for captures and of what
    /// its disk has above the floor.
    pub fn of(agent: u64, pod: Option<u64>, disk: u64) -> Self {
        let bound = |bytes: u64, by| Self { bytes, by };
        let all = [
            Some(bound(agent, BoundBy::Agent)),
            pod.map(|room| bound(room / PEAK_FACTOR, BoundBy::Pod)),
            Some(bound(disk / PEAK_FACTOR, BoundBy::Disk)),
        ];
        let least = all.into_iter().flatten().min_by_key(|bound| bound.bytes);
        least.unwrap_or_else(|| bound(agent, BoundBy::Agent))
    }

    /// Fails where nothing of use could be collected.
    pub fn check(self) -> Result<(), Failure> {
        if self.bytes >= MIN_BOUND_BYTES {
            return Ok(());
        }
        let message = format!("{} too few to begin with: {}", self.allows(), self.remedy());
        Err(Failure::new(self.reason(), message))
    }

    /// The failure of a collection that outgrew it.
    pub fn outgrown(self) -> Failure {
        let message = format!(
            "{} and it outgrew them: {}, or ask for a shorter window or fewer categories",
            self.allows(),
            self.remedy()
        );
        Failure::new(self.reason(), message)
    }

    const fn reason(self) -> CaptureReason {
        match self.by {
            BoundBy::Agent | BoundBy::Pod => CaptureReason::CaptureTooLarge,
            BoundBy::Disk => CaptureReason::DiskSpace,
        }
    }

    fn allows(self) -> String {
        let bytes = self.bytes;
        match self.by {
            BoundBy::Agent => format!("the agent's limit (--max-capture-bytes) allows a raw capture {bytes} bytes,"),
            BoundBy::Pod => format!(
                "the pod's ephemeral-storage limit leaves a raw capture {bytes} bytes (with more the pod could be evicted),"
            ),
            BoundBy::Disk => format!(
                "the node's disk leaves a raw capture {bytes} bytes beside what must stay free (--min-free-bytes, \
                 --min-free-percent),"
            ),
        }
    }

    const fn remedy(self) -> &'static str {
        match self.by {
            BoundBy::Agent => "raise it",
            BoundBy::Pod => "raise that limit of its containers and create the pod anew",
            BoundBy::Disk => "free some space on the node",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1 << 20;

    #[test]
    fn the_least_of_the_limits_bounds_a_collection_and_its_stop_fits_too() {
        let of = |agent: u64, pod: Option<u64>, disk: u64| {
            let bound = Bound::of(agent * MEBIBYTE, pod.map(|room| room * MEBIBYTE), disk * MEBIBYTE);
            (bound.bytes / MEBIBYTE, bound.by)
        };
        assert_eq!(of(2048, None, 100_000), (2048, BoundBy::Agent));
        assert_eq!(of(2048, Some(36), 100_000), (12, BoundBy::Pod));
        assert_eq!(of(2048, Some(36), 30), (10, BoundBy::Disk));
        assert_eq!(of(8, Some(36), 30), (8, BoundBy::Agent));
    }

    #[test]
    fn each_bound_has_its_reason_and_says_what_to_do() {
        for (by, reason, remedy) in [
            (BoundBy::Agent, CaptureReason::CaptureTooLarge, "--max-capture-bytes"),
            (BoundBy::Pod, CaptureReason::CaptureTooLarge, "ephemeral-storage limit"),
            (BoundBy::Disk, CaptureReason::DiskSpace, "--min-free-percent"),
        ] {
            let failure = Bound { bytes: 7, by }.outgrown();
            assert_eq!(failure.reason, reason);
            assert!(failure.message.contains(remedy), "{failure}");
        }
    }

    #[test]
    fn a_pod_without_room_is_refused_before_anything_is_collected() {
        Bound::of(u64::MAX, None, u64::MAX).check().unwrap();
        Bound::of(u64::MAX, Some(PEAK_FACTOR * MIN_BOUND_BYTES), u64::MAX)
            .check()
            .unwrap();
        let refused = Bound::of(u64::MAX, Some(PEAK_FACTOR * MIN_BOUND_BYTES - 1), u64::MAX).check();
        assert_eq!(refused.unwrap_err().reason, CaptureReason::CaptureTooLarge);
    }
}
