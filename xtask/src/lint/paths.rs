//! Source files and folders that the Markdown pages name in code: each is in the tree.
//!
//! A path is written from the root (`agent/src/steps.rs`), or as the end of one that its page
//! leaves to the reader (`node/sweep.rs`). A test behind it (`suite/record.rs::h2_*`) is not looked
//! for.

use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::project;
use pulldown_cmark::{Event, Options, Parser};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The folders that hold pages, from the repository's root.
const FOLDERS: [&str; 3] = ["", "docs", "docs/analyses"];
/// The page that tells of what was, whose files may be gone.
const HISTORY: &str = "CHANGELOG.md";
/// Endings of files that are ours wherever their folder is; others may be another program's.
const SOURCES: [&str; 4] = [".rs", ".ts", ".cu", ".mjs"];
/// Folders that are not of the tree, wherever they are.
const NOT_OURS: [&str; 2] = ["node_modules", ".git"];
/// Beginning of the names of folders that cargo builds into, at the root.
const TARGET: &str = "target";
/// What a build makes, which no clean tree has.
const BUILT: [&str; 1] = ["web/dist/"];

/// Fails on a path that leads nowhere.
pub(super) fn check() -> Result<()> {
    let root = project::root()?;
    let tree = Tree::of(&root)?;
    let mut lost = Vec::new();
    for (page, text) in pages(&root)? {
        lost.extend(tree.lost(&text).map(|path| format!("{page}: {path}")));
    }
    if lost.is_empty() {
        return Ok(());
    }
    bail!("paths that are not in the tree:\n{}", lost.join("\n"))
}

/// Every page by its path from the root, with its text.
fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        for name in names(&root.join(folder))? {
            let page = joined(folder, &name);
            if Path::new(&name).extension() == Some(OsStr::new("md")) && page != HISTORY {
                let path = root.join(&page);
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.push((page, text));
            }
        }
    }
    Ok(pages)
}

/// Names in a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let listed = || format!("cannot list {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(listed)? {
        names.push(entry.with_context(listed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn joined(folder: &str, name: &str) -> String {
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
    fn of(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, root: &Path, folder: &str) -> Result<()> {
        for name in names(&root.join(folder))? {
            let is_target = folder.is_empty() && name.starts_with(TARGET);
            if is_target || NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            let path = joined(folder, &name);
            if root.join(&path).is_dir() {
                self.add(root, &path)?;
            }
            self.0.insert(path);
        }
        Ok(())
    }

    /// Paths in the code of a page that are not in the tree.
    fn lost(&self, text: &str) -> impl Iterator<Item = String> {
        let code = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Code(code) => Some(code.into_string()),
            _ => None,
        });
        let words = code.flat_map(|code| code.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        words.filter(move |word| self.is_path(word) && !self.holds(word))
    }

    /// Whether a word of a page is a path of the tree's kind.
    fn is_path(&self, word: &str) -> bool {
        let path = path_of(word);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let first = path.split_once('/').map(|(first, _)| first);
        let is_source = SOURCES
            .iter()
            .any(|ending| path.strip_suffix(ending).is_some_and(|name| !name.is_empty()));
        path.bytes().all(is_plain) && (is_source || first.is_some_and(|first| self.0.contains(first)))
    }

    /// Whether the tree holds a path, or one that ends with it.
    fn holds(&self, word: &str) -> bool {
        let path = path_of(word);
        let is_end = |held: &String| held.strip_suffix(path).is_some_and(|folder| folder.ends_with('/'));
        let is_built = BUILT.iter().any(|built| path.starts_with(built));
        is_built || self.0.contains(path) || self.0.iter().any(is_end)
    }
}

/// The path that a word begins with: without the name of a test, and without the mark of a folder.
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
        let tree = Tree::of(&root).unwrap();
        let named = pages(&root).unwrap().into_iter().map(|(_, text)| {
            let code = Parser::new_ext(&text, Options::ENABLE_TABLES);
            let paths = code.filter(|event| matches!(event, Event::Code(word) if tree.is_path(word)));
            paths.count()
        });
        let named: usize = named.sum();
        assert!(named > 200, "the check saw {named} paths only");
    }

    #[test]
    fn a_file_that_has_moved_is_named_whether_its_path_is_whole_or_an_end() {
        let held = [
            "agent",
            "agent/src",
            "agent/src/node",
            "agent/src/node/sweep.rs",
            "tests",
            "tests/data",
            "web",
        ];
        let tree = Tree(held.map(str::to_owned).into());
        let text = "`agent/src/sweep.rs` `agent/src/node/sweep.rs` `node/sweep.rs::m1_*`, `agent/sweep.rs::m1_*` and\n\
                    | `sweep.rs` | `gone.rs` |\n|---|---|\n| `agent/src/old/` | `tests/data/` |\n\n\
                    `agent/src/<format>.rs` `docs/*.json` `train.py` `web/dist/site` `node tests/gone.mjs FILE` `weep.rs`\n\n\
                    ```console\n$ cat agent/src/none.rs\n```\n";
        let lost: Vec<String> = tree.lost(text).collect();
        assert_eq!(
            lost,
            [
                "agent/src/sweep.rs",
                "agent/sweep.rs::m1_*",
                "gone.rs",
                "agent/src/old/",
                "tests/gone.mjs",
                "weep.rs",
            ]
        );
    }
}
