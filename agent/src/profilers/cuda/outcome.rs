//! What a window came to: why nothing was recorded, where that is so.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::cuda_window::{Begun, Recorded, Refused};
use flopwatch_pipeline::failure::Failure;

use super::driver::Check;

/// Most processes of one reason that are named, and most reasons.
const MAX_NAMED: usize = 8;

/// Fails where no program has begun to record, or one has a driver that is not to be recorded with:
/// that is known for certain only once it was asked.
pub(super) fn judge_begin(begun: &Begun, allow_unproven: bool, check: Check) -> Result<(), Failure> {
    judge_drivers(&begun.drivers, allow_unproven, check)?;
    if begun.recording > 0 || begun.refused.is_empty() {
        return Ok(());
    }
    Err(refusal(&begun.refused))
}

/// Fails where a driver is not to be recorded with.
fn judge_drivers(drivers: &BTreeSet<u32>, allow_unproven: bool, check: Check) -> Result<(), Failure> {
    let unproven = drivers.iter().find_map(|driver| check(*driver).err());
    unproven.filter(|_| !allow_unproven).map_or(Ok(()), |unproven| {
        let message = format!("{unproven}; choose another profiler until then");
        Err(Failure::new(CaptureReason::VersionUnsupported, message))
    })
}

/// Fails where a program that joined has a driver that is not to be recorded with, and where
/// nothing was recorded for which somebody has a reason: programs that refused, or wrote records
/// that did not come here.
pub(super) fn judge(recorded: &Recorded, allow_unproven: bool, check: Check) -> Result<(), Failure> {
    judge_drivers(&recorded.drivers, allow_unproven, check)?;
    if recorded.records > 0 {
        return Ok(());
    }
    if recorded.written > 0 {
        let message = format!(
            "the programs counted {} records that they wrote, and none of them was read: the file of the CUDA tracer went round \
             before, or was changed by another",
            recorded.written
        );
        return Err(Failure::new(CaptureReason::EventsMissed, message));
    }
    if recorded.refused.is_empty() {
        return Ok(());
    }
    Err(refusal(&recorded.refused))
}

/// That programs refuse, each reason once.
fn refusal(refused: &[Refused]) -> Failure {
    let mut by_reason: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for one in refused {
        by_reason.entry(&one.why).or_default().push(one.pid);
    }
    let sentence = |(why, pids): (&str, Vec<u32>)| {
        let mut named: Vec<String> = pids.iter().take(MAX_NAMED).map(u32::to_string).collect();
        if pids.len() > MAX_NAMED {
            named.push(format!("{} more", pids.len() - MAX_NAMED));
        }
        format!("{why} (process {} of the container)", named.join(", "))
    };
    // The file is the container's, and may have a reason for each of its slots.
    let others = by_reason.len().saturating_sub(MAX_NAMED);
    let mut sentences: Vec<String> = by_reason.into_iter().take(MAX_NAMED).map(sentence).collect();
    if others > 0 {
        sentences.push(format!("{others} other reasons"));
    }
    let reason = if refused.iter().any(|one| one.by_other) {
        CaptureReason::OtherProfiler
    } else {
        CaptureReason::ProfilerUnavailable
    };
    let message = format!("no program of the container records: {}", sentences.join("; "));
    Failure::new(reason, message)
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer::proven::{Cuda, Unproven};

    use super::*;

    fn proven(driver: u32) -> Result<(), Unproven> {
        let driver = Cuda::of_driver(driver);
        if driver == Cuda(13, 0) {
            Ok(())
        } else {
            Err(Unproven { driver })
        }
    }

    fn refused(pid: u32, why: &str, by_other: bool) -> Refused {
        Refused {
            pid,
            why: why.to_owned(),
            by_other,
        }
    }

    fn begun(recording: usize, refused: &[Refused], drivers: &[u32]) -> Begun {
        Begun {
            recording,
            refused: refused.to_vec(),
            drivers: drivers.iter().copied().collect::<BTreeSet<_>>(),
        }
    }

    fn recorded(records: u64, written: u64, refused: &[Refused]) -> Recorded {
        Recorded {
            records,
            written,
            programs: 1,
            ended: 0,
            held: 0,
            drivers: BTreeSet::new(),
            refused: refused.to_vec(),
            early: None,
        }
    }

    #[test]
    fn a_window_has_begun_once_one_program_records() {
        let held = refused(7, "PyTorch has it", true);
        assert!(judge_begin(&begun(1, std::slice::from_ref(&held), &[13_000]), false, proven).is_ok());
        let failure = judge_begin(&begun(0, &[held], &[13_000]), false, proven).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::OtherProfiler);
        assert!(
            failure.message.ends_with("PyTorch has it (process 7 of the container)"),
            "{failure}"
        );
    }

    #[test]
    fn a_program_that_tells_of_an_unproven_driver_ends_the_window() {
        let later = begun(1, &[], &[13_000, 13_010]);
        let failure = judge_begin(&later, false, proven).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::VersionUnsupported);
        assert!(judge_begin(&later, true, proven).is_ok());
    }

    #[test]
    fn a_program_that_joins_with_an_unproven_driver_fails_what_was_recorded() {
        let joined = Recorded {
            drivers: BTreeSet::from([13_000, 13_010]),
            ..recorded(5, 5, &[])
        };
        let failure = judge(&joined, false, proven).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::VersionUnsupported);
        assert!(failure.message.contains("drivers of CUDA 13.1"), "{failure}");
        assert!(judge(&joined, true, proven).is_ok());
    }

    #[test]
    fn a_file_with_a_reason_in_each_slot_makes_a_sentence_that_ends() {
        let refused: Vec<Refused> = (0..256)
            .map(|number| refused(number, &format!("CUPTI answered with its code {number}"), false))
            .collect();
        let failure = judge(&recorded(0, 0, &refused), false, proven).unwrap_err();
        assert!(failure.message.len() < 1024, "{failure}");
        assert!(failure.message.ends_with("; 248 other reasons"), "{failure}");
    }

    #[test]
    fn nothing_recorded_is_missed_where_the_programs_counted_some() {
        let judge = |recorded: &Recorded| judge(recorded, false, proven);
        let reason = |recorded: &Recorded| judge(recorded).err().map(|failure| failure.reason);
        assert_eq!(reason(&recorded(5, 9, &[])), None);
        assert_eq!(reason(&recorded(0, 9, &[])), Some(CaptureReason::EventsMissed));
        // Whether such work was to be recorded is looked at with its categories.
        assert_eq!(reason(&recorded(0, 0, &[])), None);
        let why = [refused(7, "no libcupti", false), refused(9, "no libcupti", false)];
        let failure = judge(&recorded(0, 0, &why)).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
        assert!(failure.message.contains("no libcupti (process 7, 9 of"), "{failure}");
    }
}
