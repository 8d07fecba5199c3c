//! The certificates as they are kept in secrets, and what is read out of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::X509Certificate;

/// `data` of a secret, decoded.
pub type SecretData = BTreeMap<String, Vec<u8>>;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
pub(super) const BUNDLE: &str = "ca.crt";
const PREVIOUS: &str = "previous.crt";

/// An authority and its predecessor; everything is PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The authority's own certificate.
    pub certificate: String,
    /// Private key, in PEM.
    pub key: String,
    /// The certificate of the authority before it.
    pub previous: Option<String>,
}

impl Authority {
    /// Reads a secret; None unless it has both halves.
    pub fn of_secret(data: &SecretData) -> Option<Self> {
        Some(Self {
            certificate: text(data, CERTIFICATE)?,
            key: text(data, KEY)?,
            previous: text(data, PREVIOUS),
        })
    }

    /// The secret's content.
    pub fn to_secret(&self) -> SecretData {
        let mut data = BTreeMap::from([
            (CERTIFICATE.to_owned(), self.certificate.clone().into_bytes()),
            (KEY.to_owned(), self.key.clone().into_bytes()),
        ]);
        if let Some(previous) = &self.previous {
            data.insert(PREVIOUS.to_owned(), previous.clone().into_bytes());
        }
        data
    }

    /// Certificates to trust: this authority's, and its predecessor's until it runs out.
    pub fn bundle(&self, now: Timestamp) -> String {
        let previous = self
            .previous
            .as_deref()
            .filter(|pem| Facts::of(pem).is_some_and(|facts| facts.not_after > now));
        match previous {
            Some(previous) => format!("{}\n{}\n", self.certificate.trim_end(), previous.trim_end()),
            None => format!("{}\n", self.certificate.trim_end()),
        }
    }
}

/// A certificate to serve with; everything is PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Certificate, in PEM.
    pub certificate: String,
    /// Private key, in PEM.
    pub key: String,
    /// What those who connect shall trust.
    pub bundle: String,
}

impl Leaf {
    /// Reads a secret; None unless it has certificate and key.
    pub fn of_secret(data: &SecretData) -> Option<Self> {
        Some(Self {
            certificate: text(data, CERTIFICATE)?,
            key: text(data, KEY)?,
            bundle: text(data, BUNDLE).unwrap_or_default(),
        })
    }

    /// The secret's content.
    pub fn to_secret(&self) -> SecretData {
        BTreeMap::from([
            (CERTIFICATE.to_owned(), self.certificate.clone().into_bytes()),
            (KEY.to_owned(), self.key.clone().into_bytes()),
            (BUNDLE.to_owned(), self.bundle.clone().into_bytes()),
        ])
    }
}

/// Everything that is kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Material {
    /// The authority, if its secret has one.
    pub authority: Option<Authority>,
    /// Admission's certificate, if its secret has one.
    pub webhook: Option<Leaf>,
    /// The controller's certificate, if its secret has one.
    pub controller: Option<Leaf>,
    /// The gateway's certificate, if its secret has one.
    pub gateway: Option<Leaf>,
}

/// DNS names that certificates are good for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// DNS names of the admission Service.
    pub webhook: Vec<String>,
    /// DNS names under which the controller's metrics are scraped.
    pub controller: Vec<String>,
    /// DNS names of the gateway's Service; empty where there is no gateway.
    pub gateway: Vec<String>,
}

fn text(data: &SecretData, key: &str) -> Option<String> {
    data.get(key)
        .and_then(|value| String::from_utf8(value.clone()).ok())
        .filter(|value| !value.trim().is_empty())
}

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Subject of the certificate.
    pub(super) subject: String,
    /// Issuer of the certificate.
    pub(super) issuer: String,
    /// Start of its validity.
    pub(super) not_before: Timestamp,
    /// End of its validity.
    pub(super) not_after: Timestamp,
    /// DNS names it is good for.
    pub(super) names: Vec<String>,
    /// Public key of the certificate (SubjectPublicKeyInfo, DER).
    pub(super) public_key: Vec<u8>,
}

impl Facts {
    /// Reads the first certificate of a PEM text; None when there is none.
    pub(super) fn of(pem: &str) -> Option<Self> {
        let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
        let certificate: X509Certificate<'_> = block.parse_x509().ok()?;
        let names = certificate
            .subject_alternative_name()
            .ok()
            .flatten()
            .map(|extension| &extension.value.general_names);
        let dns = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        };
        Some(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            not_before: Timestamp::from_second(certificate.validity().not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?,
            names: names.into_iter().flatten().filter_map(dns).collect(),
            public_key: certificate.public_key().raw.to_vec(),
        })
    }

    /// Whether the certificate is valid at `now` and has more than a third of its life left.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        let life = self.not_after.as_second() - self.not_before.as_second();
        let age = now.as_second() - self.not_before.as_second();
        age >= 0 && life > 0 && age < life - life / 3
    }
}
