//! Checks that the source files and folders that the Markdown pages name in code are in the
//! repository.
//!
//! A page writes a path from the root (`agent/src/steps.rs`), or its last parts alone
//! (`node/sweep.rs`). An item that a page names behind a path, such as a test
//! (`suite/record.rs::a_program_is_recorded`), must be in that file.

use super::PAGE_FOLDERS;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::project;
use pulldown_cmark::{Event, Options, Parser};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The page that is not checked: it names files of earlier versions.
const HISTORY: &str = "CHANGELOG.md";
/// Endings that make a word of a page a path of the repository. A word with another ending, such as
/// `train.py`, may be a file of another program, and is checked only where its first folder is one
/// of the repository.
const SOURCE_ENDINGS: [&str; 4] = [".rs", ".ts", ".cu", ".mjs"];
/// Names of folders that are no part of the repository, wherever they are.
const SKIPPED_FOLDERS: [&str; 2] = ["node_modules", ".git"];
/// First part of the names of folders at the root that cargo builds into.
const BUILD_FOLDER_PREFIX: &str = "target";
/// Folders that a build makes: a page may name files in them that are not there.
const BUILT_FOLDERS: [&str; 1] = ["web/dist/"];

/// Fails where a page names a path, or an item behind one, that is not in the repository.
pub(super) fn check() -> Result<()> {
    let root = project::root()?;
    let tree = Tree::read(&root)?;
    let mut missing = Vec::new();
    for (page, text) in read_pages(&root)? {
        missing.extend(tree.missing_paths(&text).map(|path| format!("{page}: {path}")));
        let items = tree.missing_items(&text, |path| fs::read_to_string(root.join(path)).unwrap_or_default());
        missing.extend(items.map(|item| format!("{page}: {item}")));
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("paths that are not in the tree:\n{}", missing.join("\n"))
}

/// The path of every page from the root, with the page's text.
fn read_pages(root: &Path) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for folder in PAGE_FOLDERS {
        for name in list_names(&root.join(folder))? {
            let page = join(folder, &name);
            if Path::new(&name).extension() == Some(OsStr::new("md")) && page != HISTORY {
                let path = root.join(&page);
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.push((page, text));
            }
        }
    }
    Ok(pages)
}

/// Names of the files and folders in a folder, sorted.
fn list_names(folder: &Path) -> Result<Vec<String>> {
    let message = || format!("cannot list {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(message)? {
        names.push(entry.with_context(message)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The path of `name` in `folder`, which is empty for the root.
fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The files and folders of the repository, by their paths from the root.
#[derive(Debug, Default)]
struct Tree(BTreeSet<String>);

impl Tree {
    /// Lists the repository at `root`.
    fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_folder(root, "")?;
        Ok(tree)
    }

    /// Adds what lies in `folder` and in the folders below it.
    fn add_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        for name in list_names(&root.join(folder))? {
            let is_build_folder = folder.is_empty() && name.starts_with(BUILD_FOLDER_PREFIX);
            if is_build_folder || SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            let path = join(folder, &name);
            if root.join(&path).is_dir() {
                self.add_folder(root, &path)?;
            }
            self.0.insert(path);
        }
        Ok(())
    }

    /// Paths in the code of a page that are not in the repository.
    fn missing_paths(&self, text: &str) -> impl Iterator<Item = String> {
        code_words(text).filter(move |word| self.is_path(word) && !self.has_path(word))
    }

    /// Words `path::item` in the code of a page where no file with that path has the item. `read`
    /// gives the text of a file.
    fn missing_items(&self, text: &str, read: impl Fn(&str) -> String) -> impl Iterator<Item = String> {
        code_words(text).filter(move |word| {
            let Some((path, item)) = word.split_once("::") else {
                return false;
            };
            let is_name = item.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_name && self.is_path(word) && self.has_path(word) && {
                let mut files = self.files(path);
                !files.any(|file| has_identifier(&read(file), item))
            }
        })
    }

    /// The files and folders that `path` names, whole or by its last parts.
    fn files<'t>(&'t self, path: &'t str) -> impl Iterator<Item = &'t str> {
        let all_paths = self.0.iter().map(String::as_str);
        all_paths.filter(move |whole| *whole == path || ends_with_parts(whole, path))
    }

    /// Whether a word of a page is to be taken for a path of the repository: it ends as a source
    /// does, or begins with a folder of the root.
    fn is_path(&self, word: &str) -> bool {
        let path = path_of(word);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let first_folder = path.split_once('/').map(|(first, _)| first);
        let is_source = SOURCE_ENDINGS
            .iter()
            .any(|ending| path.strip_suffix(ending).is_some_and(|name| !name.is_empty()));
        path.bytes().all(is_plain) && (is_source || first_folder.is_some_and(|first| self.0.contains(first)))
    }

    /// Whether the repository has the path that a word begins with, or a build would make it.
    fn has_path(&self, word: &str) -> bool {
        let path = path_of(word);
        BUILT_FOLDERS.iter().any(|built| path.starts_with(built)) || self.files(path).next().is_some()
    }
}

/// The words between blanks in the inline code of a page.
fn code_words(text: &str) -> impl Iterator<Item = String> {
    let code = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Code(code) => Some(code.into_string()),
        _ => None,
    });
    code.flat_map(|code| code.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

/// Whether the last parts of the path `whole` are `parts`.
fn ends_with_parts(whole: &str, parts: &str) -> bool {
    whole.strip_suffix(parts).is_some_and(|folder| folder.ends_with('/'))
}

/// Whether a text has an identifier. A longer identifier that contains it does not count.
fn has_identifier(text: &str, identifier: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(identifier).any(|(start, _)| {
        let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        !is_part(before) && !is_part(text.as_bytes().get(start + identifier.len()))
    })
}

/// The path that a word begins with, without the item behind `::` and without the `/` that ends the
/// path of a folder.
fn path_of(word: &str) -> &str {
    let path = word.split_once("::").map_or(word, |(path, _)| path);
    path.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_that_the_documents_name_is_in_the_tree() {
        check().unwrap();
        let root = project::root().unwrap();
        let tree = Tree::read(&root).unwrap();
        let named = read_pages(&root).unwrap().into_iter().map(|(_, text)| {
            let code = Parser::new_ext(&text, Options::ENABLE_TABLES);
            let paths = code.filter(|event| matches!(event, Event::Code(word) if tree.is_path(word)));
            paths.count()
        });
        let named: usize = named.sum();
        assert!(named > 200, "the check saw {named} paths only");
    }

    #[test]
    fn a_name_behind_a_path_is_one_of_that_file() {
        let tree = Tree(["agent", "agent/sweep.rs"].map(str::to_owned).into());
        let text = "`agent/sweep.rs::a_test` `sweep.rs::a_test_more` `sweep.rs::test` `sweep.rs::{a,b}` `gone.rs::a`";
        let missing: Vec<String> = tree.missing_items(text, |_file| "fn a_test() {}".to_owned()).collect();
        assert_eq!(missing, ["sweep.rs::a_test_more", "sweep.rs::test"]);
    }

    #[test]
    fn a_file_that_has_moved_is_named_whether_its_path_is_whole_or_an_end() {
        let paths = [
            "agent",
            "agent/src",
            "agent/src/node",
            "agent/src/node/sweep.rs",
            "tests",
            "tests/data",
            "web",
        ];
        let tree = Tree(paths.map(str::to_owned).into());
        let text = "`agent/src/sweep.rs` `agent/src/node/sweep.rs` `node/sweep.rs::a_*`, `agent/sweep.rs::a_*` and\n\
                    | `sweep.rs` | `gone.rs` |\n|---|---|\n| `agent/src/old/` | `tests/data/` |\n\n\
                    `agent/src/<format>.rs` `docs/*.json` `train.py` `web/dist/site` `node tests/gone.mjs FILE` `weep.rs`\n\n\
                    ```console\n$ cat agent/src/none.rs\n```\n";
        let missing: Vec<String> = tree.missing_paths(text).collect();
        assert_eq!(
            missing,
            [
                "agent/src/sweep.rs",
                "agent/sweep.rs::a_*",
                "gone.rs",
                "agent/src/old/",
                "tests/gone.mjs",
                "weep.rs",
            ]
        );
    }
}
