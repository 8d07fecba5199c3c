//! Which certificates must be made anew: a function of what there is and of the time.

use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _};

use crate::certificates::issue::BACKDATE;
use crate::certificates::material::{Authority, Facts, Leaf, Material, Names};

/// How long a new authority is known before it signs: trust reaches API servers and mounted secrets
/// first.
const TRUST_DELAY: SignedDuration = SignedDuration::from_mins(15);

/// What must be made anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each certificate")]
pub struct Decision {
    /// Whether the authority is made anew.
    pub authority: bool,
    /// Whether admission's certificate is issued anew.
    pub webhook: bool,
    /// The controller's certificate.
    pub controller: bool,
    /// The gateway's certificate.
    pub gateway: bool,
}

/// Decides what is due at that time.
pub fn decide(material: &Material, names: &Names, now: Timestamp) -> Decision {
    let has_gateway = !names.gateway.is_empty();
    let usable = material
        .authority
        .as_ref()
        .filter(|authority| matches_key(&authority.certificate, &authority.key));
    let facts = usable.and_then(|authority| Facts::of(&authority.certificate));
    let (Some(authority), Some(facts)) = (usable, facts) else {
        return Decision {
            authority: true,
            webhook: true,
            controller: true,
            gateway: has_gateway,
        };
    };
    if !facts.is_fresh(now) {
        // The old authority goes on to be trusted; only if it has run out must everything be
        // replaced at once.
        let ended = facts.not_after <= now || facts.not_before > now;
        let stale = |leaf: Option<&Leaf>, names: &[String]| ended || !is_good(leaf, names, authority, &facts, now);
        return Decision {
            authority: true,
            webhook: stale(material.webhook.as_ref(), &names.webhook),
            controller: stale(material.controller.as_ref(), &names.controller),
            gateway: has_gateway && stale(material.gateway.as_ref(), &names.gateway),
        };
    }
    let bad = |leaf: Option<&Leaf>, names: &[String]| !is_good(leaf, names, authority, &facts, now);
    Decision {
        authority: false,
        webhook: bad(material.webhook.as_ref(), &names.webhook),
        controller: bad(material.controller.as_ref(), &names.controller),
        gateway: has_gateway && bad(material.gateway.as_ref(), &names.gateway),
    }
}

fn is_good(leaf: Option<&Leaf>, names: &[String], authority: &Authority, by: &Facts, now: Timestamp) -> bool {
    let Some(leaf) = leaf else { return false };
    let Some(facts) = Facts::of(&leaf.certificate) else {
        return false;
    };
    let previous = authority.previous.as_deref().and_then(Facts::of);
    // Of when it was made: it begins a little before that.
    let settling = by
        .not_before
        .saturating_add(BACKDATE + TRUST_DELAY)
        .is_ok_and(|settled| now < settled);
    let signed = facts.issuer == by.subject
        || previous.is_some_and(|previous| settling && facts.issuer == previous.subject && previous.not_after > now);
    signed
        && facts.is_fresh(now)
        && names.iter().all(|name| facts.names.contains(name))
        && matches_key(&leaf.certificate, &leaf.key)
}

fn matches_key(certificate: &str, key: &str) -> bool {
    let Some(facts) = Facts::of(certificate) else {
        return false;
    };
    KeyPair::from_pem(key).is_ok_and(|key| key.subject_public_key_info() == facts.public_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::issue::carry_out;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn names(webhook: &str) -> Names {
        Names {
            webhook: vec![webhook.to_owned()],
            controller: vec!["controller.ns.svc".to_owned()],
            gateway: Vec::new(),
        }
    }

    /// One round of the loop.
    fn step(material: &Material, now: Timestamp) -> (Decision, Material) {
        step_with(material, &names("admission.ns.svc"), now)
    }

    fn step_with(material: &Material, names: &Names, now: Timestamp) -> (Decision, Material) {
        let decision = decide(material, names, now);
        let next = carry_out(&decision, material, names, now).unwrap();
        assert_eq!(decide(&next, names, now), Decision::default(), "one round is enough");
        (decision, next)
    }

    fn verdict(authority: bool, webhook: bool, controller: bool) -> Decision {
        Decision {
            authority,
            webhook,
            controller,
            gateway: false,
        }
    }

    #[test]
    fn a_gateway_gets_a_certificate_once_there_is_one() {
        let start = at("2026-01-01T00:00:00Z");
        let (_, without) = step(&Material::default(), start);
        assert!(without.gateway.is_none());
        let mut names = names("admission.ns.svc");
        names.gateway = vec!["gateway.ns.svc".to_owned()];
        let (decision, with) = step_with(&without, &names, start);
        let gateway_alone = Decision {
            gateway: true,
            ..Decision::default()
        };
        assert_eq!(decision, gateway_alone);
        let leaf = with.gateway.unwrap();
        assert_eq!(Facts::of(&leaf.certificate).unwrap().names, names.gateway);
        assert_eq!(leaf.bundle, with.controller.unwrap().bundle);
    }

    #[test]
    fn nothing_there_makes_everything_and_then_nothing() {
        let start = at("2026-01-01T00:00:00Z");
        let (first, material) = step(&Material::default(), start);
        assert_eq!(first, verdict(true, true, true));
        assert_eq!(step(&material, at("2026-02-20T00:00:00Z")).0, Decision::default());
        let bundle = &material.webhook.as_ref().unwrap().bundle;
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1);
    }

    #[test]
    fn leaves_are_renewed_at_two_thirds_of_their_life_and_the_authority_stays() {
        let (_, material) = step(&Material::default(), at("2026-01-01T00:00:00Z"));
        assert_eq!(step(&material, at("2026-03-01T00:00:00Z")).0, Decision::default());
        let (renewed, later) = step(&material, at("2026-03-03T00:00:00Z"));
        assert_eq!(renewed, verdict(false, true, true));
        assert!(later.authority == material.authority);
    }

    #[test]
    fn a_new_authority_is_trusted_before_it_signs() {
        let (_, material) = step(&Material::default(), at("2026-01-01T00:00:00Z"));
        let (_, leaves) = step(&material, at("2029-04-01T00:00:00Z"));
        let rotation = at("2029-05-05T00:00:00Z");
        let (decision, rotated) = step(&leaves, rotation);
        assert_eq!(decision, verdict(true, false, false));
        let (before, after) = (leaves.webhook.unwrap(), rotated.webhook.clone().unwrap());
        assert!(before.certificate == after.certificate && before.key == after.key);
        assert_eq!(
            after.bundle.matches("BEGIN CERTIFICATE").count(),
            2,
            "both authorities are trusted"
        );
        let (settling, same) = step(&rotated, at("2029-05-05T00:14:00Z"));
        assert_eq!(settling, Decision::default());
        let (settled, signed) = step(&same, at("2029-05-05T00:20:00Z"));
        assert_eq!(settled, verdict(false, true, true));
        assert_eq!(
            signed.controller.unwrap().bundle.matches("BEGIN CERTIFICATE").count(),
            2,
            "until the old one runs out"
        );
    }

    #[test]
    fn what_does_not_fit_together_is_replaced() {
        let now = at("2026-01-02T00:00:00Z");
        let (_, good) = step(&Material::default(), at("2026-01-01T00:00:00Z"));
        let (_, other) = step(&Material::default(), at("2026-01-01T00:00:00Z"));
        let mut swapped_key = good.clone();
        swapped_key.webhook.as_mut().unwrap().key = other.webhook.as_ref().unwrap().key.clone();
        let mut foreign = good.clone();
        foreign.controller = other.controller.clone();
        let mut garbage = good.clone();
        garbage.webhook.as_mut().unwrap().certificate = "no certificate".to_owned();
        let mut no_authority = good.clone();
        no_authority.authority = None;
        let mut broken_authority = good.clone();
        broken_authority.authority.as_mut().unwrap().key = other.authority.as_ref().unwrap().key.clone();
        let cases = [
            ("swapped key", swapped_key, verdict(false, true, false)),
            ("signed by another", foreign, verdict(false, false, true)),
            ("garbage", garbage, verdict(false, true, false)),
            ("authority deleted", no_authority, verdict(true, true, true)),
            ("authority's key swapped", broken_authority, verdict(true, true, true)),
        ];
        for (name, material, expected) in cases {
            assert_eq!(step(&material, now).0, expected, "{name}");
        }
        let renamed = decide(&good, &names("other.ns.svc"), now);
        assert_eq!(renamed, verdict(false, true, false), "a Service of another name");
        let expired = step(&good, at("2040-01-01T00:00:00Z"));
        assert_eq!(expired.0, verdict(true, true, true), "after a long sleep");
    }
}
