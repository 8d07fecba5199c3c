//! Names of objects, with and without their kind.

use std::str::FromStr;

/// Name of a pod, as `NAME` or `pod/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName(pub String);

impl FromStr for PodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, &["pod", "pods", "po"]).map(Self)
    }
}

/// Name of a session, as `NAME` or `profilingsession/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName(pub String);

impl FromStr for SessionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = [
            "profilingsession",
            "profilingsessions",
            "pfs",
            "session",
            "profilingsession.flopwatch.dev",
            "profilingsessions.flopwatch.dev",
        ];
        named(text, &kinds).map(Self)
    }
}

/// Name of a capture, as `NAME` or `capture/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureName(pub String);

impl FromStr for CaptureName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, &["capture", "captures", "capture.flopwatch.dev"]).map(Self)
    }
}

pub(super) fn named(text: &str, kinds: &[&str]) -> Result<String, String> {
    let name = match text.split_once('/') {
        None => text,
        Some((kind, name)) if kinds.contains(&kind) => name,
        Some((kind, _)) => return Err(format!("{kind}/ is none of {}/", kinds.join("/, "))),
    };
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if name.is_empty() || name.len() > 253 || !name.bytes().all(allowed) {
        return Err("a name has lower-case letters, digits, - and . alone".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_with_and_without_their_kind() {
        let pod = |text: &str| text.parse::<PodName>().map(|PodName(name)| name);
        assert_eq!(pod("pod/trainer"), Ok("trainer".into()));
        assert_eq!(pod("trainer-0.a"), Ok("trainer-0.a".into()));
        assert_eq!(
            pod("deployment/trainer"),
            Err("deployment/ is none of pod/, pods/, po/".into())
        );
        for wrong in ["", "pod/", "a/b/c", "Trainer", "a b", "../x", "pod/../x"] {
            assert!(pod(wrong).is_err(), "{wrong}");
        }
        assert_eq!("pfs/first".parse(), Ok(SessionName("first".into())));
    }
}
