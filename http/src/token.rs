//! What a bearer token says of itself, before anybody asks whether it is one. Nothing of it is
//! believed: it chooses which question is put to the Kubernetes API.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// Longest token, in bytes: those of an identity provider that lists a user's groups are the
/// longest in use.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The part of a JSON Web Token that is looked at.
#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    aud: Audiences,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Several(Vec<String>),
}

impl Default for Audiences {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// Whether any cluster could have given it out: one word of visible characters, and not too long.
/// Tokens need not be JSON Web Tokens.
pub(crate) fn is_plausible(token: &str) -> bool {
    (1..=MAX_TOKEN_BYTES).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether it is a JSON Web Token that says it is for that audience.
pub(crate) fn is_said_to_be_for(token: &str, audience: &str) -> bool {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let claims: Option<Claims> = URL_SAFE_NO_PAD
        .decode(payload)
        .ok()
        .and_then(|json| serde_json::from_slice(&json).ok());
    match claims.map(|claims| claims.aud) {
        Some(Audiences::One(one)) => one == audience,
        Some(Audiences::Several(several)) => several.iter().any(|one| one == audience),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_says_whom_it_is_for() {
        for claims in [r#"{"aud":"a/n"}"#, r#"{"aud":["x","a/n"]}"#] {
            assert!(is_said_to_be_for(&token(claims), "a/n"), "{claims}");
            assert!(!is_said_to_be_for(&token(claims), "a"), "{claims}");
        }
        for other in [
            "opaque",
            "a.b",
            "a.b.c",
            "",
            "..",
            &token("{}"),
            &token("[]"),
            &token(r#"{"aud":7}"#),
            &format!("{}.more", token(r#"{"aud":"a/n"}"#)),
        ] {
            assert!(!is_said_to_be_for(other, "a/n"), "{other}");
        }
    }

    #[test]
    fn what_no_cluster_gives_out_is_told_without_asking() {
        for good in ["07401b.f395accd246ae52d", "sha256~a_b", "k8s-aws-v1.aHR0", "x=="] {
            assert!(is_plausible(good), "{good}");
        }
        for bad in ["", "two words", "\u{7}", "t\u{f6}ken", &"x".repeat(MAX_TOKEN_BYTES + 1)] {
            assert!(!is_plausible(bad), "{bad:.20}");
        }
    }
}
