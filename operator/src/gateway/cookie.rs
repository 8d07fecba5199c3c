//! The sign-in cookie: a browser's copy of the user's token, encrypted with a key that only this
//! process has.
//!
//! Scripts cannot read the cookie (`HttpOnly`), browsers send it to no other site
//! (`SameSite=Strict`), and only this process can decrypt it: cookies do not tell the ports of a
//! host apart, and a plain token would open the whole cluster to a program on another port. A
//! cookie is valid for an hour and until the process ends. A token has at most 2816 bytes, so that
//! the cookie fits into the 4096 that browsers keep.

use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Name of the cookie. Browsers accept the prefix `__Host-` only on a cookie that is `Secure`, has
/// the path `/` and names no domain.
pub(crate) const COOKIE_NAME: &str = "__Host-flopwatch";
/// Validity of a cookie.
const COOKIE_LIFETIME: Duration = Duration::from_hours(1);
/// Longest token that a cookie holds: browsers keep 4096 bytes of a cookie.
const MAX_TOKEN_BYTES: usize = 2816;
/// Bytes of the expiry in a sealed token: seconds since 1970, big-endian.
const EXPIRY_BYTES: usize = 8;

/// Why a cookie could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CookieError {
    /// The token has more bytes than a cookie holds; the number is that of the token.
    #[error(
        "the token has {0} bytes, and a browser keeps only one of up to {MAX_TOKEN_BYTES}; one that `kubectl create token` makes fits"
    )]
    Long(usize),
    /// The system gave no random bytes, or the cipher failed.
    #[error("the token cannot be sealed")]
    Seal,
}

/// Encrypts and decrypts sign-in cookies (AES-256-GCM, per-process key).
pub(crate) struct Cookies {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Cookies {
    /// Draws a random key, which lasts as long as the value. The error is `Seal` where the system
    /// gives no random bytes.
    pub(crate) fn new() -> Result<Self, CookieError> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key).map_err(|_unspecified| CookieError::Seal)?;
        let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_unspecified| CookieError::Seal)?;
        Ok(Self {
            key: LessSafeKey::new(key),
            random,
        })
    }

    /// The value of `Set-Cookie` that has a browser keep `token`, sealed, for an hour from `now`
    /// on. The error is `Long` where the token does not fit.
    pub(crate) fn seal(&self, token: &str, now: Timestamp) -> Result<HeaderValue, CookieError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(CookieError::Long(token.len()));
        }
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_unspecified| CookieError::Seal)?;
        let until = now
            .checked_add(COOKIE_LIFETIME)
            .map_err(|_unspecified| CookieError::Seal)?
            .as_second();
        let mut text = until.to_be_bytes().to_vec();
        text.extend_from_slice(token.as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(COOKIE_NAME), &mut text)
            .map_err(|_unspecified| CookieError::Seal)?;
        let sealed = URL_SAFE_NO_PAD.encode([nonce.as_slice(), &text].concat());
        header(&sealed, COOKIE_LIFETIME.as_secs())
    }

    /// The token in a request's cookie; None where there is no cookie, where another process sealed
    /// it, where it was changed, and where its hour was over at `now`.
    pub(crate) fn open(&self, headers: &HeaderMap, now: Timestamp) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let sealed = cookies
            .flat_map(|cookies| cookies.split(';'))
            .find_map(|cookie| cookie.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='))?;
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.key.open_in_place(nonce, Aad::from(COOKIE_NAME), &mut text).ok()?;
        let (until, token) = text.split_first_chunk::<EXPIRY_BYTES>()?;
        let counts = now.as_second() < i64::from_be_bytes(*until);
        counts.then(|| String::from_utf8(token.to_vec()).ok())?
    }
}

/// The value of `Set-Cookie` that has a browser remove the cookie.
pub(crate) fn clear_cookie() -> Result<HeaderValue, CookieError> {
    header("", 0)
}

fn header(value: &str, seconds: u64) -> Result<HeaderValue, CookieError> {
    let text = format!("{COOKIE_NAME}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict");
    let mut header = HeaderValue::try_from(text).map_err(|_unspecified| CookieError::Seal)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of a browser that was answered with `header`.
    fn kept(header: &HeaderValue) -> HeaderMap {
        let cookie = header.to_str().unwrap().split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, format!("theme=dark; {cookie}; a=b").parse().unwrap());
        headers
    }

    #[test]
    fn what_was_sealed_is_opened_for_an_hour() {
        let cookies = Cookies::new().unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let header = cookies.seal("token", now).unwrap();
        let text = header.to_str().unwrap();
        assert!(!text.contains("token"), "{text}");
        for attribute in ["Path=/", "Max-Age=3600", "Secure", "HttpOnly", "SameSite=Strict"] {
            assert!(
                text.split("; ").any(|part| part == attribute),
                "{text} has no {attribute}"
            );
        }
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(cookies.open(&kept(&header), after(3599)).as_deref(), Some("token"));
        assert_eq!(cookies.open(&kept(&header), after(3600)), None);
    }

    #[test]
    fn nothing_else_is_opened() {
        let cookies = Cookies::new().unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let other = Cookies::new().unwrap().seal("token", now).unwrap();
        assert_eq!(cookies.open(&kept(&other), now), None, "sealed by another process");
        let sealed = cookies.seal("token", now).unwrap();
        let sealed = sealed.to_str().unwrap().split(';').next().unwrap();
        for at in COOKIE_NAME.len() + 1..sealed.len() {
            let mut changed = sealed.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_bytes(&changed).unwrap());
            assert_eq!(cookies.open(&headers, now), None, "changed at {at}");
        }
        for cookie in [
            "",
            "a",
            COOKIE_NAME,
            "__Host-flopwatch=",
            "__Host-flopwatch=AAAA",
            "__Host-flopwatch2=x",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookie));
            assert_eq!(cookies.open(&headers, now), None, "{cookie}");
        }
        assert_eq!(cookies.open(&HeaderMap::new(), now), None);
    }

    #[test]
    fn the_longest_token_makes_a_cookie_that_browsers_keep() {
        let cookies = Cookies::new().unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let header = cookies.seal(&"x".repeat(MAX_TOKEN_BYTES), now).unwrap();
        assert!(header.len() <= 4096, "{} bytes", header.len());
        assert!(cookies.seal(&"x".repeat(MAX_TOKEN_BYTES + 1), now).is_err());
    }
}
