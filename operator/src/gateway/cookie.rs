//! What a browser keeps of whoever signed in: their token, sealed with a key that only this process has.
//!
//! Scripts cannot read it, it goes to no other site, and it is of no use to anybody but this gateway: cookies do not tell ports of a
//! host apart, and the token itself would open the whole cluster to a program on another port.

use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Its name. Browsers take the prefix only on a cookie that is secure, of the whole host and of no other host.
pub(crate) const NAME: &str = "__Host-flopwatch";
/// How long a browser stays signed in.
const LIFE: Duration = Duration::from_hours(1);
/// Longest token: browsers keep 4096 bytes of a cookie.
const LONGEST_TOKEN: usize = 2816;
/// Bytes of the time at which a sealed token ends to count.
const TIME_LEN: usize = 8;

/// Why there is no cookie.
#[derive(Debug, thiserror::Error)]
pub enum CookieError {
    /// The token does not fit.
    #[error(
        "the token has {0} bytes, and a browser keeps only one of up to {LONGEST_TOKEN}; one that `kubectl create token` makes fits"
    )]
    Long(usize),
    /// The system gives no randomness, or the cipher failed.
    #[error("the token cannot be sealed")]
    Seal,
}

/// Encrypts and decrypts sign-in cookies (AES-256-GCM, per-process key).
pub(crate) struct Cookies {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Cookies {
    /// With a key that lasts as long as the process.
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

    /// The header that has a browser keep `token` from `now` on.
    pub(crate) fn seal(&self, token: &str, now: Timestamp) -> Result<HeaderValue, CookieError> {
        if token.len() > LONGEST_TOKEN {
            return Err(CookieError::Long(token.len()));
        }
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_unspecified| CookieError::Seal)?;
        let until = now
            .checked_add(LIFE)
            .map_err(|_unspecified| CookieError::Seal)?
            .as_second();
        let mut text = until.to_be_bytes().to_vec();
        text.extend_from_slice(token.as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(NAME), &mut text)
            .map_err(|_unspecified| CookieError::Seal)?;
        let sealed = URL_SAFE_NO_PAD.encode([nonce.as_slice(), &text].concat());
        header(&sealed, LIFE.as_secs())
    }

    /// The token that a request's cookie holds, unless it is another's, was changed or ended to count.
    pub(crate) fn open(&self, headers: &HeaderMap, now: Timestamp) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let sealed = cookies
            .flat_map(|cookies| cookies.split(';'))
            .find_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='))?;
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.key.open_in_place(nonce, Aad::from(NAME), &mut text).ok()?;
        let (until, token) = text.split_first_chunk::<TIME_LEN>()?;
        let counts = now.as_second() < i64::from_be_bytes(*until);
        counts.then(|| String::from_utf8(token.to_vec()).ok())?
    }
}

/// The header that has a browser forget it.
pub(crate) fn forget() -> Result<HeaderValue, CookieError> {
    header("", 0)
}

fn header(value: &str, seconds: u64) -> Result<HeaderValue, CookieError> {
    let text = format!("{NAME}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict");
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
        for at in NAME.len() + 1..sealed.len() {
            let mut changed = sealed.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_bytes(&changed).unwrap());
            assert_eq!(cookies.open(&headers, now), None, "changed at {at}");
        }
        for cookie in [
            "",
            "a",
            NAME,
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
        let header = cookies.seal(&"x".repeat(LONGEST_TOKEN), now).unwrap();
        assert!(header.len() <= 4096, "{} bytes", header.len());
        assert!(cookies.seal(&"x".repeat(LONGEST_TOKEN + 1), now).is_err());
    }
}
