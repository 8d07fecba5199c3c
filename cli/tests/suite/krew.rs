//! The manifest for krew keeps krew's rules once a release has filled it in.

use regex::Regex;
use serde_json::Value;

/// As krew-release-bot fills it in.
fn filled_in() -> Value {
    let template = include_str!("../../krew.yaml");
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    let text = template.replace("{{ .TagName }}", tag);
    let archive = Regex::new(r#"(?m)^( *)\{\{addURIAndSha "([^"]+)" \.TagName \}\}$"#).unwrap();
    let digest = "0a".repeat(32);
    let text = archive.replace_all(&text, format!("${{1}}uri: ${{2}}\n${{1}}sha256: {digest}"));
    assert!(!text.contains("{{"), "nothing is left to fill in: {text}");
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_manifest_keeps_krews_rules() {
    let manifest = filled_in();
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "flopwatch");
    let spec = &manifest["spec"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert!(
        Regex::new(r"^v\d+\.\d+\.\d+$")
            .unwrap()
            .is_match(&text(&spec["version"]))
    );
    assert!(text(&spec["homepage"]).starts_with("https://"));
    let short = text(&spec["shortDescription"]);
    assert!(
        short.len() <= 50 && !short.ends_with('.') && !short.to_lowercase().contains("kubectl"),
        "{short}"
    );
    for words in ["description", "caveats"] {
        let words = text(&spec[words]);
        assert!(words.lines().all(|line| line.len() <= 80), "{words}");
    }
    let platforms = spec["platforms"].as_array().unwrap();
    assert!(!platforms.is_empty());
    for platform in platforms {
        let labels = &platform["selector"]["matchLabels"];
        let (os, arch) = (text(&labels["os"]), text(&labels["arch"]));
        let uri = text(&platform["uri"]);
        assert!(
            uri.starts_with("https://") && uri.ends_with(&format!("_{os}_{arch}.tar.gz")),
            "{uri}"
        );
        assert!(uri.contains(&text(&spec["version"])), "{uri}");
        assert_eq!(text(&platform["sha256"]).len(), 64);
        let files: Vec<String> = platform["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| text(&file["from"]))
            .collect();
        // A plugin is the file kubectl-NAME, and krew wants its licence beside it.
        assert_eq!(text(&platform["bin"]), "kubectl-flopwatch");
        assert!(
            files.contains(&text(&platform["bin"])) && files.contains(&"LICENSE".to_owned()),
            "{files:?}"
        );
    }
}
