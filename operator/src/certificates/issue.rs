//! Makes certificates.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use time::OffsetDateTime;

use crate::certificates::decide::Decision;
use crate::certificates::material::{Authority, Facts, Leaf, Material, Names};

const AUTHORITY_VALIDITY: SignedDuration = SignedDuration::from_hours(5 * 365 * 24);
const LEAF_VALIDITY: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long before it is made a certificate begins: whoever checks it may have a clock that is
/// behind ours by as much.
pub(super) const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A name is not a DNS name, or the authority that was kept cannot sign.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The clock shows a time that a certificate cannot hold.
    #[error("the clock shows {0}, which a certificate cannot hold")]
    Clock(Timestamp),
    /// A certificate was to be signed without an authority.
    #[error("there is no authority to sign with")]
    NoAuthority,
}

/// Makes what was decided on; the rest stays as it is. Every bundle is brought up to date.
pub fn carry_out(
    decision: &Decision,
    current: &Material,
    names: &Names,
    now: Timestamp,
) -> Result<Material, IssueError> {
    let authority = if decision.authority {
        let previous = current
            .authority
            .as_ref()
            .map(|authority| authority.certificate.clone());
        let previous = previous.filter(|pem| Facts::of(pem).is_some_and(|facts| facts.not_after > now));
        new_authority(previous, now)?
    } else {
        current.authority.clone().ok_or(IssueError::NoAuthority)?
    };
    let bundle = authority.bundle(now);
    let leaf = |again: bool, current: Option<&Leaf>, names: &[String]| -> Result<Option<Leaf>, IssueError> {
        let mut leaf = match current {
            Some(current) if !again => current.clone(),
            _ => new_leaf(&authority, names, now)?,
        };
        leaf.bundle.clone_from(&bundle);
        Ok(Some(leaf))
    };
    Ok(Material {
        webhook: leaf(decision.webhook, current.webhook.as_ref(), &names.webhook)?,
        controller: leaf(decision.controller, current.controller.as_ref(), &names.controller)?,
        gateway: match names.gateway.as_slice() {
            [] => current.gateway.clone(),
            names => leaf(decision.gateway, current.gateway.as_ref(), names)?,
        },
        authority: Some(authority),
    })
}

fn new_authority(previous: Option<String>, now: Timestamp) -> Result<Authority, IssueError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    // A name of its own for each authority: by it a certificate is known to be of this one and not
    // of another.
    params.distinguished_name = named(&format!("flopwatch authority {:08x}", fastrand::u32(..)));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    (params.not_before, params.not_after) = validity(now, AUTHORITY_VALIDITY)?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Authority {
        certificate,
        key: key.serialize_pem(),
        previous,
    })
}

fn new_leaf(authority: &Authority, names: &[String], now: Timestamp) -> Result<Leaf, IssueError> {
    let key = KeyPair::generate()?;
    Ok(Leaf {
        certificate: certify(authority, &key, names, LEAF_VALIDITY, now)?,
        key: key.serialize_pem(),
        bundle: String::new(),
    })
}

/// Signs a key for these names, for so many seconds, but for no longer than every certificate.
pub(super) fn sign(
    authority: Option<&Authority>,
    key: &impl PublicKeyData,
    names: &[String],
    seconds: Option<i32>,
    now: Timestamp,
) -> Result<String, IssueError> {
    let asked = seconds.map_or(LEAF_VALIDITY, |seconds| SignedDuration::from_secs(seconds.into()));
    certify(
        authority.ok_or(IssueError::NoAuthority)?,
        key,
        names,
        asked.min(LEAF_VALIDITY),
        now,
    )
}

/// A certificate to serve with, as PEM.
fn certify(
    authority: &Authority,
    key: &impl PublicKeyData,
    names: &[String],
    life: SignedDuration,
    now: Timestamp,
) -> Result<String, IssueError> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = named("flopwatch");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = validity(now, life)?;
    Ok(params.signed_by(key, &issuer)?.pem())
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn validity(now: Timestamp, life: SignedDuration) -> Result<(OffsetDateTime, OffsetDateTime), IssueError> {
    let instant =
        |at: Timestamp| OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|_range| IssueError::Clock(now));
    let begin = now.checked_sub(BACKDATE).map_err(|_range| IssueError::Clock(now))?;
    let end = now.checked_add(life).map_err(|_range| IssueError::Clock(now))?;
    Ok((instant(begin)?, instant(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_valid_by_a_clock_that_is_minutes_behind() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let names = Names {
            webhook: vec!["admission.ns.svc".to_owned()],
            controller: vec!["controller.ns.svc".to_owned()],
            gateway: vec!["gateway.ns.svc".to_owned()],
        };
        let everything = Decision {
            authority: true,
            webhook: true,
            controller: true,
            gateway: true,
        };
        let made = carry_out(&everything, &Material::default(), &names, now).unwrap();
        let leaves =
            [&made.webhook, &made.controller, &made.gateway].map(|leaf| leaf.as_ref().unwrap().certificate.clone());
        let authority = made.authority.as_ref().unwrap().certificate.clone();
        let behind = now.checked_sub(SignedDuration::from_secs(4 * 60 + 59)).unwrap();
        for certificate in leaves.iter().chain([&authority]) {
            let facts = Facts::of(certificate).unwrap();
            assert!(facts.not_before <= behind, "{facts:?}");
            assert!(facts.is_fresh(behind) && facts.is_fresh(now));
        }
    }
}
