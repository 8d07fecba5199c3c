//! Credentials for a registry, out of a pod's pull secrets.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use oci_client::secrets::RegistryAuth;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    auth: Option<String>,
}

impl Entry {
    fn credentials(&self) -> Option<(String, String)> {
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Some((user.clone(), password.clone()));
        }
        let decoded = STANDARD.decode(self.auth.as_deref()?.trim()).ok()?;
        let decoded = String::from_utf8(decoded).ok()?;
        let (user, password) = decoded.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }
}

/// The credentials with the longest matching path, as kubelet chooses; anonymous without a match.
pub(super) fn choose(secrets: &[Secret], registry: &str, repository: &str) -> RegistryAuth {
    let target = format!("{}/{repository}", canonical(registry));
    let mut best: Option<(usize, (String, String))> = None;
    for (key, entry) in secrets.iter().flat_map(entries) {
        let scope = scope(&key);
        let matches = target == scope || target.strip_prefix(&scope).is_some_and(|rest| rest.starts_with('/'));
        let longer = best.as_ref().is_none_or(|(length, _)| scope.len() > *length);
        if let Some(credentials) = entry.credentials().filter(|_| matches && longer) {
            best = Some((scope.len(), credentials));
        }
    }
    best.map_or(RegistryAuth::Anonymous, |(_, (user, password))| {
        RegistryAuth::Basic(user, password)
    })
}

fn entries(secret: &Secret) -> Vec<(String, Entry)> {
    let data = |key: &str| {
        secret
            .data
            .as_ref()
            .and_then(|data| data.get(key))
            .map(|value| value.0.as_slice())
    };
    let auths = match secret.type_.as_deref() {
        Some("kubernetes.io/dockerconfigjson") => data(".dockerconfigjson")
            .and_then(|json| serde_json::from_slice::<DockerConfig>(json).ok())
            .map(|config| config.auths),
        Some("kubernetes.io/dockercfg") => data(".dockercfg").and_then(|json| serde_json::from_slice(json).ok()),
        _ => None,
    };
    auths.unwrap_or_default().into_iter().collect()
}

/// Host and path that an entry is for: `https://index.docker.io/v1/` is for `docker.io`.
fn scope(key: &str) -> String {
    let key = key
        .trim_start_matches("https://")
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let key = key
        .strip_suffix("/v1")
        .or_else(|| key.strip_suffix("/v2"))
        .unwrap_or(key);
    match key.split_once('/') {
        Some((host, path)) => format!("{}/{path}", canonical(host)),
        None => canonical(key).to_owned(),
    }
}

fn canonical(registry: &str) -> &str {
    match registry {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        other => other,
    }
}

/// Tells credentials apart without holding them.
pub(super) fn fingerprint(auth: &RegistryAuth) -> String {
    let secret = match auth {
        RegistryAuth::Anonymous => return "anonymous".to_owned(),
        RegistryAuth::Basic(user, password) => format!("{user}:{password}"),
        RegistryAuth::Bearer(token) => token.clone(),
    };
    format!("{:x?}", Sha256::digest(secret).as_slice())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(auths: &serde_json::Value) -> Secret {
        let config = serde_json::to_vec(&json!({"auths": auths})).unwrap();
        serde_json::from_value(json!({
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": STANDARD.encode(config)}
        }))
        .unwrap()
    }

    #[test]
    fn the_longest_path_wins_and_other_registries_get_nothing() {
        let secrets = [
            secret(&json!({
                "registry.test:5000": {"username": "all", "password": "1"},
                "registry.test:5000/team": {"auth": STANDARD.encode("team:a:b")}
            })),
            secret(&json!({"https://index.docker.io/v1/": {"username": "hub", "password": "2"}})),
        ];
        let basic = |user: &str, password: &str| RegistryAuth::Basic(user.to_owned(), password.to_owned());
        let cases = [
            ("registry.test:5000", "team/app", basic("team", "a:b")),
            ("registry.test:5000", "teams/app", basic("all", "1")),
            ("docker.io", "library/python", basic("hub", "2")),
            ("index.docker.io", "library/python", basic("hub", "2")),
            ("registry.test", "team/app", RegistryAuth::Anonymous),
        ];
        for (registry, repository, expected) in cases {
            assert_eq!(
                choose(&secrets, registry, repository),
                expected,
                "{registry}/{repository}"
            );
        }
        assert_eq!(
            choose(&[Secret::default()], "registry.test", "x"),
            RegistryAuth::Anonymous
        );
    }
}
