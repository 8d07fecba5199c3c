//! What XLA and JAX wrote of the programs that they compiled, in the folders that the program's environment names, and whatever else the
//! program put there: HLO, StableHLO, profiles of device memory.
//!
//! The folders are the container's, so that everything in them is untrusted: only plain files are taken, within bounds of number and size,
//! and what is left out is listed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use flopwatch_api::preparation::{JAX_DUMP_IR_TO, XLA_DUMP_TO, XLA_FLAGS};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::rootfs::{ContainerRoot, RootfsError};
use flopwatch_trace::model::count;
use serde::Serialize;
use tar::{Builder, Header};

use crate::failure::chain;

/// The list of what is in an archive, its last file.
const INDEX: &str = "index.json";
/// Most files of an archive: a program of thirty small functions has a thousand.
const FILES: usize = 8192;
/// Most names that are looked at, folders and what is no file among them.
const NAMES: usize = 4 * FILES;
/// Most names that the index lists as left out; it counts the others.
const LEFT_OUT: usize = 64;
/// Bytes of a header in an archive.
const HEADER: u64 = 512;

/// Why an archive could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum DumpsError {
    /// The container's root cannot be opened.
    #[error("the container's files cannot be read")]
    Root(#[source] RootfsError),
    /// The archive, or the file that each dump is copied to first, cannot be written.
    #[error("the archive of the dumps cannot be written")]
    Archive(#[from] io::Error),
}

/// The folders that a program's variables name, none twice. Only plain absolute paths are taken.
pub(super) fn folders<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Vec<PathBuf> {
    let flags = variable(XLA_FLAGS).unwrap_or_default().split_ascii_whitespace();
    let of_xla = flags.filter_map(|flag| flag.strip_prefix(XLA_DUMP_TO)).next_back();
    let named = of_xla.into_iter().chain(variable(JAX_DUMP_IR_TO));
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in named.map(|path| path.trim_end_matches('/')) {
        let plain = folder.starts_with('/') && folder.split('/').all(|part| part != "..");
        if plain && folders.iter().all(|known| known != Path::new(folder)) {
            folders.push(folder.into());
        }
    }
    folders
}

/// What is in an archive, and what is not.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    /// Where was looked.
    folders: Vec<PathBuf>,
    /// Files in the archive.
    pub(super) files: usize,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Files that are not in it.
    left_out_count: usize,
    /// The first of them.
    left_out: Vec<LeftOut>,
}

/// A file that is not in the archive.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct LeftOut {
    path: PathBuf,
    why: String,
}

impl Index {
    fn leave_out(&mut self, path: &Path, why: String) {
        self.left_out_count = self.left_out_count.saturating_add(1);
        if self.left_out.len() < LEFT_OUT {
            self.left_out.push(LeftOut {
                path: path.to_owned(),
                why,
            });
        }
    }
}

/// Where an archive goes.
#[derive(Debug)]
pub(super) struct Sink {
    /// The archive.
    pub(super) archive: File,
    /// A file of no name, for what is copied out.
    pub(super) copy: File,
    /// Most bytes of the archive.
    pub(super) limit: u64,
}

/// Writes the files of those folders, and of the folders in them, to an archive.
pub(super) fn pack(procfs: &Procfs, process: ProcessId, folders: &[PathBuf], sink: Sink) -> Result<Index, DumpsError> {
    let root = ContainerRoot::open(procfs, process).map_err(DumpsError::Root)?;
    Packing::new(&root, sink).pack(folders)
}

/// An archive that is being written.
struct Packing<'a> {
    root: &'a ContainerRoot,
    archive: Builder<File>,
    /// A file as it was copied out: one that changes meanwhile has another size than it was looked up with.
    copy: File,
    left: u64,
    names: usize,
    index: Index,
}

impl<'a> Packing<'a> {
    fn new(root: &'a ContainerRoot, sink: Sink) -> Self {
        Self {
            root,
            archive: Builder::new(sink.archive),
            copy: sink.copy,
            left: sink.limit,
            names: 0,
            index: Index::default(),
        }
    }

    fn pack(mut self, folders: &[PathBuf]) -> Result<Index, DumpsError> {
        self.index.folders = folders.to_vec();
        for folder in folders {
            for path in self.entries(folder) {
                match self.root.stat(&path) {
                    Ok(_) => self.add(&path)?,
                    // A folder of one module.
                    Err(_) if self.root.volume(&path).is_ok() => {
                        for path in self.entries(&path) {
                            self.add(&path)?;
                        }
                    }
                    Err(error) => self.index.leave_out(&path, chain(&error)),
                }
            }
        }
        let text = serde_json::to_vec_pretty(&self.index).map_err(io::Error::from)?;
        append(
            &mut self.archive,
            Path::new(INDEX),
            &mut text.as_slice(),
            count(text.len()),
            0,
        )?;
        self.archive.into_inner()?.sync_data()?;
        Ok(self.index)
    }

    /// Paths of what lies in a folder, in their order; those beyond the bound are left out.
    fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let most = FILES.min(NAMES.saturating_sub(self.names));
        if most == 0 {
            self.index.leave_out(folder, format!("{NAMES} names were looked at"));
            return Vec::new();
        }
        match self.root.list(folder, most) {
            Ok(names) => {
                self.names = self.names.saturating_add(names.len());
                if names.len() == most {
                    self.index
                        .leave_out(folder, format!("only its first {most} names were looked at"));
                }
                let mut paths: Vec<_> = names.into_iter().map(|name| folder.join(name)).collect();
                paths.sort_unstable();
                paths
            }
            Err(error) => {
                self.index.leave_out(folder, chain(&error));
                Vec::new()
            }
        }
    }

    fn add(&mut self, path: &Path) -> Result<(), DumpsError> {
        if self.index.files >= FILES {
            self.index.leave_out(path, format!("an archive holds {FILES} files"));
            return Ok(());
        }
        self.copy.set_len(0)?;
        self.copy.rewind()?;
        let copied = self.root.stat(path).and_then(|facts| {
            let bytes = self.root.copy_out(path, &mut self.copy, self.left, |_| true)?;
            Ok((bytes, facts.modified_unix))
        });
        let (bytes, modified) = match copied {
            Ok(copied) => copied,
            Err(RootfsError::Sink { source, .. }) => return Err(source.into()),
            Err(error) => {
                self.index.leave_out(path, chain(&error));
                return Ok(());
            }
        };
        self.copy.rewind()?;
        let name = path.strip_prefix("/").unwrap_or(path);
        append(&mut self.archive, name, &mut self.copy, bytes, modified)?;
        self.left = self.left.saturating_sub(bytes.saturating_add(HEADER));
        self.index.files = self.index.files.saturating_add(1);
        self.index.bytes = self.index.bytes.saturating_add(bytes);
        Ok(())
    }
}

fn append(
    archive: &mut Builder<File>,
    name: &Path,
    content: &mut dyn io::Read,
    bytes: u64,
    modified: i64,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(u64::try_from(modified).unwrap_or_default());
    archive.append_data(&mut header, name, content.take(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn folders_are_those_that_the_variables_name() {
        for (xla, jax, expected) in [
            (None, None, &[][..]),
            (Some("--xla_dump_to=/a/ --xla_dump_hlo_as_text"), None, &["/a"]),
            (Some("--xla_dump_to=/a --xla_dump_to=/b"), Some("/c"), &["/b", "/c"]),
            (Some("--xla_dump_to=/a"), Some("/a/"), &["/a"]),
            (Some("--xla_dump_to=-"), Some("sponge"), &[]),
            (Some("--xla_dump_to=/a/../etc"), Some(""), &[]),
        ] {
            let found = folders(|name| if name == XLA_FLAGS { xla } else { jax });
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{xla:?} {jax:?}");
        }
    }

    /// Name and content of each file of an archive of those folders.
    fn packed(root: &Path, folders: &[&str], limit: u64) -> (Index, BTreeMap<String, String>) {
        let folders: Vec<_> = folders.iter().map(PathBuf::from).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        let root = ContainerRoot::of_folder(root).unwrap();
        let sink = Sink {
            archive: file.reopen().unwrap(),
            copy: tempfile::tempfile().unwrap(),
            limit,
        };
        let index = Packing::new(&root, sink).pack(&folders).unwrap();
        let mut archive = tar::Archive::new(file.reopen().unwrap());
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            (name, content)
        });
        (index, files.collect())
    }

    #[test]
    fn files_are_packed_and_what_is_none_or_too_much_is_listed() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("dumps/jit_f/deep")).unwrap();
        std::fs::write(at("dumps/module_0001.jit_f.txt"), "HloModule").unwrap();
        std::fs::write(at("dumps/jit_f/module.mlir"), "module @jit_f").unwrap();
        std::fs::write(at("dumps/jit_f/deep/other"), "not taken").unwrap();
        std::fs::write(at("dumps/large"), vec![b'x'; 4096]).unwrap();
        std::fs::write(at("secret"), "a secret").unwrap();
        std::os::unix::fs::symlink("/secret", at("dumps/link")).unwrap();
        std::os::unix::fs::symlink("/", at("dumps/up")).unwrap();
        nix::unistd::mkfifo(&at("dumps/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();

        let (index, files) = packed(root.path(), &["/dumps", "/nothing"], 2048);
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        let (hlo, stablehlo) = ("dumps/module_0001.jit_f.txt", "dumps/jit_f/module.mlir");
        assert_eq!(names, [stablehlo, hlo, INDEX]);
        assert_eq!(
            (files[hlo].as_str(), files[stablehlo].as_str()),
            ("HloModule", "module @jit_f")
        );
        assert_eq!((index.files, index.bytes), (2, 22));
        let left_out: Vec<_> = index.left_out.iter().map(|left| left.path.to_str().unwrap()).collect();
        assert_eq!(
            left_out,
            [
                "/dumps/jit_f/deep",
                "/dumps/large",
                "/dumps/link",
                "/dumps/pipe",
                "/dumps/up"
            ]
        );
        assert_eq!(index.left_out_count, left_out.len());
        assert!(files[INDEX].contains("\"leftOutCount\": 5"), "{}", files[INDEX]);
    }

    #[test]
    fn a_folder_of_more_names_than_are_looked_at_ends_the_search_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        let folders = (0..6).map(|at| format!("/dumps-{at}")).collect::<Vec<_>>();
        for folder in &folders {
            let folder = root.path().join(&folder[1..]);
            std::fs::create_dir(&folder).unwrap();
            for at in 0..FILES {
                std::os::unix::fs::symlink("/", folder.join(at.to_string())).unwrap();
            }
        }
        let folders: Vec<_> = folders.iter().map(String::as_str).collect();
        let (index, files) = packed(root.path(), &folders, 2048);
        assert_eq!((index.files, files.len()), (0, 1));
        // Every link, four folders that are as full as one may be, and two that nobody looked at.
        assert_eq!(index.left_out_count, NAMES + 6);
        assert_eq!(index.left_out.len(), LEFT_OUT);
    }
}
