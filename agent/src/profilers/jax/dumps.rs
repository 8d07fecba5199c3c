//! What XLA and JAX wrote of the programs that they compiled, in the folders that the program's
//! environment names, and whatever else the program put there: HLO, StableHLO, profiles of device
//! memory.
//!
//! The folders are the container's, so that everything in them is untrusted: only plain files are
//! taken, within bounds of number and size, and what is left out is listed. They are read as the
//! program's user, and of the files of other users only those below `TMPDIR` are taken: whoever may
//! read what a session records gets nothing that the program itself would not have given away.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flopwatch_api::preparation::{JAX_DUMP_IR_TO, XLA_DUMP_TO, XLA_FLAGS};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::rootfs::{self, RootfsError};
use flopwatch_attach::user_files::{Entry, Kind, UserFiles};
use flopwatch_model::count;
use flopwatch_pipeline::failure::chain;
use serde::Serialize;
use tar::{Builder, Header};

/// The list of what is in an archive, its last file.
const INDEX: &str = "index.json";
/// Most files of an archive: a program of thirty small functions has a thousand.
const MAX_FILES: usize = 8192;
/// Most names that are looked at, folders and what is no file among them.
const MAX_NAMES: usize = 4 * MAX_FILES;
/// Most names that the index lists as left out; it counts the others.
const MAX_LEFT_OUT: usize = 64;
/// Bytes of a header in an archive.
const HEADER_BYTES: u64 = 512;

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

/// Why a file is not in an archive.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    /// The file cannot be read in the container.
    #[error(transparent)]
    Unread(#[from] RootfsError),
    /// The file's metadata cannot be read.
    #[error("it cannot be looked at")]
    Unseen(#[from] io::Error),
    /// The file belongs to another user, and lies outside of the program's `TMPDIR`.
    #[error("it belongs to user {owner} and lies outside of TMPDIR; the program's user is {user}")]
    Foreign { owner: u32, user: u32 },
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
    /// Size of the dumps, in bytes.
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
        if self.left_out.len() < MAX_LEFT_OUT {
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
    /// File that the archive is written to.
    pub(super) archive: File,
    /// A file of no name, for what is copied out.
    pub(super) copy: File,
    /// Most bytes of the archive.
    pub(super) limit: u64,
}

/// Where dumps are looked for.
#[derive(Debug)]
pub(super) struct Places {
    /// Absolute paths of the folders that the program dumps to.
    pub(super) folders: Vec<PathBuf>,
    /// The folder for the program's temporary files, which are its own whoever wrote them.
    pub(super) temporary: Option<PathBuf>,
}

/// Writes the files of those folders, and of the folders in them, to an archive.
pub(super) fn pack(procfs: &Procfs, process: ProcessId, places: &Places, sink: Sink) -> Result<Index, DumpsError> {
    let files = UserFiles::open(procfs, process).map_err(DumpsError::Root)?;
    Packing::new(&files, places, sink).pack()
}

/// An archive that is being written.
struct Packing<'a> {
    files: &'a UserFiles,
    places: &'a Places,
    archive: Builder<File>,
    /// A file as it was copied out: one that changes meanwhile has another size than it was looked
    /// up with.
    copy: File,
    left: u64,
    names: usize,
    index: Index,
}

impl<'a> Packing<'a> {
    fn new(files: &'a UserFiles, places: &'a Places, sink: Sink) -> Self {
        Self {
            files,
            places,
            archive: Builder::new(sink.archive),
            copy: sink.copy,
            left: sink.limit,
            names: 0,
            index: Index {
                folders: places.folders.clone(),
                ..Index::default()
            },
        }
    }

    fn pack(mut self) -> Result<Index, DumpsError> {
        let places = self.places;
        for folder in &places.folders {
            for entry in self.entries(folder) {
                if matches!(entry.kind, Ok(Kind::Folder)) {
                    // A folder of one module.
                    for entry in self.entries(&entry.path) {
                        self.add(entry)?;
                    }
                } else {
                    self.add(entry)?;
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

    /// What lies in a folder, in its order; what is beyond the bound is left out.
    fn entries(&mut self, folder: &Path) -> Vec<Entry> {
        let most = MAX_FILES.min(MAX_NAMES.saturating_sub(self.names));
        if most == 0 {
            self.index
                .leave_out(folder, format!("{MAX_NAMES} names were looked at"));
            return Vec::new();
        }
        match self.files.entries(folder, most) {
            Ok(entries) => {
                self.names = self.names.saturating_add(entries.len());
                if entries.len() == most {
                    self.index
                        .leave_out(folder, format!("only its first {most} names were looked at"));
                }
                entries
            }
            Err(error) => {
                self.index.leave_out(folder, chain(&error));
                Vec::new()
            }
        }
    }

    /// Adds a file, or lists what is none.
    fn add(&mut self, Entry { path, kind }: Entry) -> Result<(), DumpsError> {
        let path = path.as_path();
        match kind {
            Ok(Kind::File) => {}
            Ok(Kind::Folder) => {
                self.index.leave_out(path, "it is a folder in a folder".to_owned());
                return Ok(());
            }
            Err(error) => {
                self.index.leave_out(path, chain(&error));
                return Ok(());
            }
        }
        if self.index.files >= MAX_FILES {
            self.index
                .leave_out(path, format!("an archive holds {MAX_FILES} files"));
            return Ok(());
        }
        self.copy.set_len(0)?;
        self.copy.rewind()?;
        let (bytes, modified) = match self.copy_out(path) {
            Ok(copied) => copied,
            Err(NotTaken::Unread(RootfsError::Sink { source, .. })) => return Err(source.into()),
            Err(why) => {
                self.index.leave_out(path, chain(&why));
                return Ok(());
            }
        };
        self.copy.rewind()?;
        let name = path.strip_prefix("/").unwrap_or(path);
        append(&mut self.archive, name, &mut self.copy, bytes, modified)?;
        self.left = self.left.saturating_sub(bytes.saturating_add(HEADER_BYTES));
        self.index.files = self.index.files.saturating_add(1);
        self.index.bytes = self.index.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Copies a file out; its bytes, and when it was last changed.
    fn copy_out(&mut self, path: &Path) -> Result<(u64, i64), NotTaken> {
        let file = self.files.open_file(path, self.left)?;
        // Of the file that is open, so that nobody puts another one in its place.
        let facts = file.metadata()?;
        let (owner, user) = (facts.uid(), self.files.user().uid());
        let temporary = self.places.temporary.as_deref();
        if owner != user && temporary.is_none_or(|temporary| !path.starts_with(temporary)) {
            return Err(NotTaken::Foreign { owner, user });
        }
        let bytes = rootfs::copy(&file, path, &mut self.copy, self.left, |_| true)?;
        Ok((bytes, facts.mtime()))
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
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::fs::Permissions;
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use flopwatch_attach::container_user::ContainerUser;

    use super::*;

    /// The user of the process with that PID.
    pub(in crate::profilers::jax) fn user_of(pid: u32) -> ContainerUser {
        let procfs = Procfs::default();
        let process = procfs.identify(i32::try_from(pid).unwrap()).unwrap();
        ContainerUser::of(&procfs, process).unwrap()
    }

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
        packed_as(root, user_of(std::process::id()), folders, limit)
    }

    fn packed_as(root: &Path, user: ContainerUser, folders: &[&str], limit: u64) -> (Index, BTreeMap<String, String>) {
        let places = Places {
            folders: folders.iter().map(PathBuf::from).collect(),
            temporary: Some("/tmp".into()),
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        let files = UserFiles::of_folder(root, user).unwrap();
        let sink = Sink {
            archive: file.reopen().unwrap(),
            copy: tempfile::tempfile().unwrap(),
            limit,
        };
        let index = Packing::new(&files, &places, sink).pack().unwrap();
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
    fn files_that_the_programs_user_may_not_read_or_that_are_not_its_own_are_left_out() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: files of several users need root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        for folder in ["", "home", "home/.ssh", "tmp"] {
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        }
        let file = |path: &str, owner: u32, mode: u32| {
            let path = root.path().join(path);
            std::fs::write(&path, "content").unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        };
        file("home/own.txt", 1000, 0o600);
        file("home/of-root", 0, 0o600);
        file("home/of-root-for-all", 0, 0o644);
        file("home/.ssh/id_ed25519", 0, 0o600);
        file("tmp/of-root-for-all", 0, 0o644);
        file("tmp/of-root", 0, 0o600);
        let mut program = Command::new("sleep").arg("60").uid(1000).gid(1000).spawn().unwrap();
        let user = user_of(program.id());
        program.kill().unwrap();
        program.wait().unwrap();

        let (index, files) = packed_as(root.path(), user, &["/home", "/tmp"], 1 << 20);
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["home/own.txt", INDEX, "tmp/of-root-for-all"]);
        let left_out: Vec<_> = index.left_out.iter().map(|left| left.path.to_str().unwrap()).collect();
        let expected = [
            "/home/.ssh/id_ed25519",
            "/home/of-root",
            "/home/of-root-for-all",
            "/tmp/of-root",
        ];
        assert_eq!(left_out, expected);
        let why: Vec<_> = index.left_out.iter().map(|left| left.why.as_str()).collect();
        assert!(why[1].contains("Permission denied"), "{why:?}");
        assert!(why[2].contains("belongs to user 0"), "{why:?}");
        assert!(files[INDEX].contains("/home/of-root"), "{}", files[INDEX]);
    }

    #[test]
    fn a_folder_of_more_names_than_are_looked_at_ends_the_search_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        let folders = (0..6).map(|at| format!("/dumps-{at}")).collect::<Vec<_>>();
        for folder in &folders {
            let folder = root.path().join(&folder[1..]);
            std::fs::create_dir(&folder).unwrap();
            for at in 0..MAX_FILES {
                std::os::unix::fs::symlink("/", folder.join(at.to_string())).unwrap();
            }
        }
        let folders: Vec<_> = folders.iter().map(String::as_str).collect();
        let (index, files) = packed(root.path(), &folders, 2048);
        assert_eq!((index.files, files.len()), (0, 1));
        // Every link, four folders that are as full as one may be, and two that nobody looked at.
        assert_eq!(index.left_out_count, MAX_NAMES + 6);
        assert_eq!(index.left_out.len(), MAX_LEFT_OUT);
    }
}
