//! The `docker-archive` form of an image, which `ctr images import` reads: layers, a configuration,
//! a manifest, in one tar.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::cache::file_hash;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{Read, Write as _};
use std::path::Path;
use tar::{Builder, Header};

/// Part of every image's hash: raise it when the bytes written here change.
pub(crate) const LAYOUT: &str = "1";

/// What a container of the image does unless its pod says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageConfig {
    pub(crate) entrypoint: Vec<String>,
    /// `uid:gid`; empty for root.
    pub(crate) user: String,
}

impl ImageConfig {
    /// The image's configuration document over layers with these digests.
    pub(crate) fn to_json(&self, digests: &[String]) -> Value {
        let diff_ids: Vec<String> = digests.iter().map(|digest| format!("sha256:{digest}")).collect();
        json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "Entrypoint": self.entrypoint,
                "User": self.user,
            },
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": digests.iter().map(|_| json!({"created_by": "cargo xtask"})).collect::<Vec<_>>(),
        })
    }
}

/// An image to write.
pub(crate) struct Archive<'a> {
    pub(crate) reference: &'a str,
    pub(crate) config: &'a ImageConfig,
    /// Uncompressed tars, the lowest first.
    pub(crate) layers: &'a [&'a Path],
}

impl Archive<'_> {
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let digests = self
            .layers
            .iter()
            .map(|layer| file_hash(layer))
            .collect::<Result<Vec<_>>>()?;
        let config = self.config.to_json(&digests).to_string();
        let config_name = format!("{}.json", hex::encode(Sha256::digest(&config)));
        let layer_names: Vec<String> = digests.iter().map(|digest| format!("{digest}.tar")).collect();
        let manifest =
            json!([{"Config": config_name, "RepoTags": [self.reference], "Layers": layer_names}]).to_string();
        let file = fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut tar = Builder::new(std::io::BufWriter::with_capacity(1 << 20, file));
        for (layer, name) in self.layers.iter().zip(&layer_names) {
            let data = fs::File::open(layer)?;
            append(&mut tar, name, data.metadata()?.len(), data)?;
        }
        for (name, text) in [(config_name.as_str(), &config), ("manifest.json", &manifest)] {
            append(&mut tar, name, u64::try_from(text.len())?, text.as_bytes())?;
        }
        tar.into_inner()?.flush()?;
        Ok(())
    }
}

fn append(tar: &mut Builder<impl std::io::Write>, name: &str, size: u64, data: impl Read) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(size);
    header.set_mtime(0);
    Ok(tar.append_data(&mut header, name, data)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_archive_says_truly_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (lower, upper, out) = (
            folder.path().join("a"),
            folder.path().join("b"),
            folder.path().join("image.tar"),
        );
        fs::write(&lower, "lower layer").unwrap();
        fs::write(&upper, "upper layer").unwrap();
        let config = ImageConfig {
            entrypoint: vec!["/run".into()],
            user: "1:2".into(),
        };
        Archive {
            reference: "localhost/x:dev",
            config: &config,
            layers: &[&lower, &upper],
        }
        .write(&out)
        .unwrap();

        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(fs::File::open(&out).unwrap()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["localhost/x:dev"]));
        let name = manifest[0]["Config"].as_str().unwrap();
        assert_eq!(name, format!("{}.json", hex::encode(Sha256::digest(&files[name]))));
        let config: Value = serde_json::from_slice(&files[name]).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/run"]));
        assert_eq!(config["config"]["User"], json!("1:2"));
        for (index, text) in ["lower layer", "upper layer"].iter().enumerate() {
            let digest = hex::encode(Sha256::digest(text));
            assert_eq!(config["rootfs"]["diff_ids"][index], json!(format!("sha256:{digest}")));
            assert_eq!(manifest[0]["Layers"][index], json!(format!("{digest}.tar")));
            assert_eq!(files[&format!("{digest}.tar")], text.as_bytes());
        }
    }
}
