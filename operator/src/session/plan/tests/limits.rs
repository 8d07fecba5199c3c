//! How many captures a namespace may have at once.

use super::*;

fn quota(limit: usize, taken: usize) -> Quota {
    Quota {
        limit: Some(limit),
        taken,
    }
}

#[test]
fn a_session_waits_while_its_namespace_is_full_and_takes_the_place_that_becomes_free() {
    let session = begun(&json!({}));
    let pods = [pod("p", "Running")];
    let with = |quota| {
        plan(
            &session,
            &World {
                quota,
                ..world(&pods, &[])
            },
        )
    };
    let full = with(quota(2, 2));
    assert!(full.create.is_empty() && full.status.completion_time.is_none());
    insta::assert_snapshot!(targets_found(&full), @"False NamespaceLimit: the namespace may have 2 captures at once: the session asks for 1 and waits until others have ended");
    assert_eq!(with(quota(2, 1)).create.len(), 1);
    assert_eq!(with(Quota::default()).create.len(), 1, "no limit");
}

#[test]
fn a_session_that_waited_too_long_for_its_namespace_says_that_it_was_full() {
    let session = begun(&json!({"startDeadlineSeconds": 60}));
    let pods = [pod("p", "Running")];
    let step = plan(
        &session,
        &World {
            quota: quota(1, 1),
            ..world(&pods, &[])
        },
    );
    assert!(targets_found(&step).starts_with("False NamespaceLimit"));
    assert!(step.status.completion_time.is_some());
}

#[test]
fn a_session_that_asks_for_more_than_a_namespace_may_have_is_refused_at_once() {
    let spec = selector(3);
    let session = begun(&spec);
    let pods = [pod("p", "Running"), pod("q", "Running"), pod("r", "Running")];
    let step = plan(
        &session,
        &World {
            quota: quota(2, 0),
            ..world(&pods, &[])
        },
    );
    assert!(step.create.is_empty());
    insta::assert_snapshot!(succeeded(&step), @"False Failed: the session asks for 3 captures, and a namespace may have 2 at once: lower spec.target.maxPods or name fewer containers");
}

#[test]
fn a_pass_that_was_cut_off_finishes_what_was_admitted() {
    let spec = selector(2);
    let (session, captures) = (begun(&spec), capturing(&spec, &[pod("q", "Running")]).1);
    let pods = [pod("p", "Running"), pod("q", "Running")];
    let step = plan(
        &session,
        &World {
            quota: quota(2, 2),
            ..world(&pods, &captures)
        },
    );
    assert_eq!(step.create.len(), 1);
}
