//! Relative links between the Markdown pages: the file is there, and so is the heading.

use super::PAGE_FOLDERS;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::project;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Fails on a link that leads nowhere.
pub(super) fn check() -> Result<()> {
    let root = project::root()?;
    let pages = pages(&root)?;
    let broken = broken(&pages, |path| root.join(path).exists());
    if broken.is_empty() {
        return Ok(());
    }
    bail!("links that lead nowhere:\n{}", broken.join("\n"))
}

/// Every page by its path from the root.
fn pages(root: &Path) -> Result<BTreeMap<PathBuf, Page>> {
    let mut pages = BTreeMap::new();
    for folder in PAGE_FOLDERS {
        let path = root.join(folder);
        for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
            let name = PathBuf::from(entry?.file_name());
            if name.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(path.join(&name))
                    .with_context(|| format!("cannot read {}", path.join(&name).display()))?;
                pages.insert(Path::new(folder).join(name), Page::parse(&text));
            }
        }
    }
    Ok(pages)
}

/// What links are checked against.
#[derive(Debug, Default)]
struct Page {
    /// Targets of links and pictures, as they are written.
    links: Vec<String>,
    /// Names of the headings, as GitHub makes them.
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(heading) = heading.take() {
                        page.add_anchor(&anchor(&heading));
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }

    /// A second heading of the same name gets `-1`, the third one `-2`.
    fn add_anchor(&mut self, name: &str) {
        let mut unique = name.to_owned();
        let mut repeated = 0;
        while !self.anchors.insert(unique) {
            repeated += 1;
            unique = format!("{name}-{repeated}");
        }
    }
}

/// The name that GitHub gives a heading: lower case, punctuation dropped, spaces as hyphens.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .flat_map(|letter| if letter == ' ' { '-' } else { letter }.to_lowercase())
        .collect()
}

/// One line for each link to a file that is not there or to a heading that its page lacks. Links to
/// the web are not followed.
fn broken(pages: &BTreeMap<PathBuf, Page>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, page) in pages {
        for link in page.links.iter().filter(|link| !link.contains(':')) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                resolve(path, file)
            };
            let reason = match pages.get(&target) {
                None if !exists(&target) => "no such file",
                Some(page) if !heading.is_empty() && !page.anchors.contains(heading) => "no such heading",
                _ => continue,
            };
            broken.push(format!("{}: {link}: {reason}", path.display()));
        }
    }
    broken
}

/// The path from the root of a file that a page names.
fn resolve(page: &Path, file: &str) -> PathBuf {
    let mut resolved = page.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => resolved.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_between_the_documents_leads_somewhere() {
        check().unwrap();
        let pages = pages(&project::root().unwrap()).unwrap();
        let links: usize = pages.values().map(|page| page.links.len()).sum();
        assert!(links > 60, "the check saw {links} links only");
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_named() {
        let text = "# One `two`, three!\n\n## Same\n\n## Same\n\n[a](../README.md) [b](#one-two-three) [c](#same-1) [d](other.md#gone)\n\
                    [e](gone.md) ![f](gone.png) [g](https://example.com/x.md) [h](../src/lib.rs)\n\n| [i](#same-2) |\n|---|\n";
        let pages = [("docs/page.md", text), ("docs/other.md", "# Here\n"), ("README.md", "")]
            .map(|(path, text)| (PathBuf::from(path), Page::parse(text)));
        let broken = broken(&pages.into(), |path| path == Path::new("src/lib.rs"));
        assert_eq!(
            broken,
            [
                "docs/page.md: other.md#gone: no such heading",
                "docs/page.md: gone.md: no such file",
                "docs/page.md: gone.png: no such file",
                "docs/page.md: #same-2: no such heading",
            ]
        );
    }
}
