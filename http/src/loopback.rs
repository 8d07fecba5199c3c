//! Requests over loopback, which a page of another site could have sent.

use axum::http::HeaderMap;
use axum::http::header::HOST;

/// Whether a request that came over loopback was meant for it. A page of another site can make a
/// browser connect here under a name that its owner points at 127.0.0.1; the browser then still
/// sends that name.
pub fn is_for_this_machine(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn only_names_of_this_machine_are_its_host() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"] {
            assert!(is_for_this_machine(&headers(&[(HOST, host)])), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:x",
            "::1",
        ] {
            assert!(!is_for_this_machine(&headers(&[(HOST, host)])), "{host}");
        }
        assert!(!is_for_this_machine(&HeaderMap::new()));
    }
}
