//! Deflates what `cargo xtask web` built and lists it for `include!`. Without a build the list is
//! empty: the programs that serve the viewer can be built without Node.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let web = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // The folder is always there, so a build that appears, changes or goes is noticed, and nothing
    // else is.
    println!("cargo::rerun-if-changed={}", web.join("dist").display());
    let site = web.join("dist/site");
    let mut paths = Vec::new();
    if site.is_dir() {
        collect(&site, &mut paths)?;
    }
    paths.sort();
    let mut list = String::from("&[\n");
    for (number, path) in paths.iter().enumerate() {
        let name = path.strip_prefix(&site)?.to_str().ok_or("a file's name is no UTF-8")?;
        let bytes = fs::read(path)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let deflated = out.join(format!("{number}.gz"));
        fs::write(&deflated, encoder.finish()?)?;
        let mut tag = hex::encode(Sha256::digest(&bytes));
        tag.truncate(16);
        writeln!(
            list,
            "    Asset {{ path: {name:?}, etag: {:?}, gzip: include_bytes!({:?}) }},",
            format!("\"{tag}\""),
            deflated.display().to_string()
        )?;
    }
    list.push_str("]\n");
    fs::write(out.join("site.rs"), list)?;
    Ok(())
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}
