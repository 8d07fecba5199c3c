//! What a window of the tracer came to, in words.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_pipeline::cuda_window::{EarlyEnd, Recorded, Refused};
use flopwatch_tracer::proven;
use flopwatch_tracer_file::wanted::TICK_NS;

use super::Error;

/// Most processes of one reason that are named.
const MAX_NAMED: usize = 8;

/// Fails where nothing was recorded, with the reason. Ranges alone are a recording too.
pub(super) fn judge(recorded: &Recorded, has_ranges: bool) -> Result<(), Error> {
    if recorded.records > 0 || has_ranges {
        return Ok(());
    }
    if !recorded.refused.is_empty() {
        return Err(Error::Refused(refusals(recorded).join("; ")));
    }
    match (recorded.programs, recorded.ended) {
        (0, _) => Err(Error::NoCuda),
        (_, 0) => Ok(()),
        (_, ended) => Err(Error::TooShort(ended)),
    }
}

/// What a person should know of the window.
pub(super) fn notes(recorded: &Recorded) -> Vec<String> {
    let refused = refusals(recorded).into_iter();
    let mut notes: Vec<String> = refused.map(|why| format!("not recorded: {why}")).collect();
    notes.extend((recorded.early == Some(EarlyEnd::Full)).then(|| {
        "the window ended early: it holds as many records as a timeline may have events; ask for a shorter one"
            .to_owned()
    }));
    notes.extend((recorded.held > 0).then(|| {
        format!(
            "the last of CUDA is missing of {} programs that ended within the window: CUPTI still had {} buffers of records, of \
             their last {} ms or of work that had not ended",
            recorded.ended,
            recorded.held,
            TICK_NS / 1_000_000
        )
    }));
    notes.extend(unproven(recorded));
    notes
}

/// That a program refuses, for people who look on meanwhile.
pub(super) fn refusal(refused: &Refused) -> String {
    format!("process {} is not recorded: {}", refused.pid, refused.why)
}

/// Each driver of which no GPU has shown that the tracer works there.
fn unproven(recorded: &Recorded) -> impl Iterator<Item = String> {
    let unproven = recorded
        .drivers
        .iter()
        .filter_map(|driver| proven::check(*driver).err());
    // Releases of one generation are told once.
    let told: BTreeSet<String> = unproven.map(|driver| driver.to_string()).collect();
    told.into_iter().take(MAX_NAMED)
}

/// Each reason for which processes did not record, with their numbers.
fn refusals(recorded: &Recorded) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for refused in &recorded.refused {
        by_reason.entry(&refused.why).or_default().push(refused.pid);
    }
    let sentence = |(why, pids): (&str, Vec<u32>)| {
        let mut named: Vec<String> = pids.iter().take(MAX_NAMED).map(u32::to_string).collect();
        if pids.len() > MAX_NAMED {
            named.push(format!("{} more", pids.len() - MAX_NAMED));
        }
        format!("{why} (process {})", named.join(", "))
    };
    by_reason.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(records: u64, programs: usize, ended: usize, refused: &[(u32, &str)]) -> Recorded {
        let refused = refused.iter().map(|(pid, why)| Refused {
            pid: *pid,
            why: (*why).to_owned(),
            by_other: false,
        });
        Recorded {
            records,
            written: records,
            programs,
            ended,
            held: u64::try_from(ended).unwrap(),
            drivers: BTreeSet::new(),
            refused: refused.collect(),
            early: None,
        }
    }

    #[test]
    fn a_window_without_records_is_an_error_that_says_why() {
        for (recorded, expected) in [
            (window(0, 0, 0, &[]), "no program of the command began CUDA"),
            (window(0, 2, 2, &[]), "2 programs ended before CUPTI handed out"),
            (
                window(0, 2, 0, &[(7, "no libcupti"), (9, "no libcupti")]),
                "nothing was recorded: no libcupti (process 7, 9)",
            ),
        ] {
            let error = judge(&recorded, false).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(judge(&recorded, true).is_ok(), "ranges are a recording");
        }
        // What is required of it is looked at later, with its categories.
        assert!(judge(&window(0, 1, 0, &[]), false).is_ok());
    }

    #[test]
    fn what_is_missing_of_a_window_with_records_is_told_beside_it() {
        let recorded = window(5, 3, 1, &[(7, "no libcupti")]);
        assert!(judge(&recorded, false).is_ok());
        let notes = notes(&recorded);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(notes[0], "not recorded: no libcupti (process 7)");
        assert!(
            notes[1].contains("1 programs that ended") && notes[1].contains("1 buffers"),
            "{notes:?}"
        );
        // Of one that ended when CUPTI had nothing of it, nothing is missing.
        let whole = Recorded { held: 0, ..recorded };
        assert_eq!(super::notes(&whole).len(), 1);
        // Two releases of a generation that there is not yet.
        let unproven = Recorded {
            drivers: BTreeSet::from([99_000, 99_001]),
            ..window(5, 1, 0, &[])
        };
        let notes = super::notes(&unproven);
        assert!(
            notes.len() == 1 && notes[0].contains("drivers of CUDA 99.0"),
            "{notes:?}"
        );
    }
}
