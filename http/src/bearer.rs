//! The bearer token of a request.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// The bearer token in the header `Authorization`; None where the request has no or several such
/// headers.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_bearer_token_is_the_only_credential() {
        assert_eq!(bearer(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["bearer abc"])), Some("abc"));
        for value in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(bearer(&headers(&[value])), None, "{value}");
        }
        let mut two = headers(&["Bearer abc"]);
        two.append(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        assert_eq!((bearer(&two), bearer(&headers(&[]))), (None, None));
    }
}
