//! Circles of imports: files that use each other, by way of others too, are understood and changed
//! as one.
//!
//! A file uses another where its code, tests left out, imports an item of it or names one by its
//! path. Re-exports are followed to where the item is defined: a file that only lists what its
//! modules give uses none of them.

use super::tracked;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// Most files of a crate that use each other in a circle.
const MAX_FILES: usize = 6;
/// Longest way of a name through re-exports.
const MAX_REEXPORTS: usize = 16;

/// A module by the names that lead to it from the crate's root, as its file has them.
type Module = Vec<String>;

/// The files of a crate.
type Sources = BTreeMap<Module, Source>;

/// Fails on a circle of too many files in one of the agent's crates.
pub(super) fn check() -> Result<()> {
    let mut crates: BTreeMap<String, Sources> = BTreeMap::new();
    for (file, text) in tracked(&["agent/*.rs"])? {
        if let Some((folder, module)) = module_of(&file) {
            crates.entry(folder).or_default().insert(module, Source::of(&text));
        }
    }
    let mut found = Vec::new();
    for (folder, sources) in &crates {
        let large = circles(sources).into_iter().filter(|circle| circle.len() > MAX_FILES);
        found.extend(large.map(|circle| {
            let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            format!("{folder}: {} files: {}", circle.len(), names.join(", "))
        }));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "circles of imports of more than {MAX_FILES} files (move what they share into a file of its own):\n{}",
        found.join("\n")
    )
}

/// The folder of a crate's sources and the module that a file of it is; none for tests, and for
/// programs beside a library.
fn module_of(file: &str) -> Option<(String, Module)> {
    let (folder, rest) = file.split_once("/src/")?;
    let module: Module = rest.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if rest == "main.rs" || module.iter().any(|part| part == "tests") {
        return None;
    }
    let module = if rest == "lib.rs" { Module::new() } else { module };
    Some((format!("{folder}/src"), module))
}

/// What a file names, without its tests.
#[derive(Debug, Default)]
struct Source {
    /// Names that it imports, with their paths.
    imports: Vec<(String, Vec<String>)>,
    /// Names that it gives on, with their paths.
    exports: Vec<(String, Vec<String>)>,
    /// Paths of two names and more in its code.
    paths: BTreeSet<Vec<String>>,
    /// The first names of paths and the names without a path in its code.
    names: BTreeSet<String>,
}

impl Source {
    fn of(text: &str) -> Self {
        let mut source = Self::default();
        let mut statement = String::new();
        let mut lines = text.lines().map(code).peekable();
        while let Some(line) = lines.next() {
            let is_test = line.trim() == "#[cfg(test)]";
            if is_test && lines.peek().is_some_and(|next| next.ends_with('{') && is_module(next)) {
                break;
            }
            let begins = after_visibility(&line).1.starts_with("use ");
            if statement.is_empty() && !begins {
                if !is_module(&line) {
                    source.take(&line);
                }
                continue;
            }
            statement.push_str(line.trim());
            statement.push(' ');
            if statement.contains(';') {
                source.take_use(&statement);
                statement.clear();
            }
        }
        source
    }

    /// Takes in the names of a line of code.
    fn take(&mut self, line: &str) {
        let is_name = |character: char| character.is_alphanumeric() || character == '_' || character == ':';
        for word in line.split(|character| !is_name(character)) {
            let path = segments(word.trim_matches(':'));
            if let Some(first) = path.first() {
                self.names.insert(first.clone());
            }
            if path.len() > 1 {
                self.paths.insert(path);
            }
        }
    }

    /// Takes in a `use` with all that it names.
    fn take_use(&mut self, statement: &str) {
        let (is_public, rest) = after_visibility(statement);
        let tree = rest.strip_prefix("use ").unwrap_or(rest);
        let tree = tree.split_once(';').map_or(tree, |(tree, _)| tree);
        let names = if is_public {
            &mut self.exports
        } else {
            &mut self.imports
        };
        leaves(&[], tree, names);
    }

    /// The path of a name that it imports or gives on.
    fn target(&self, name: &str) -> Option<&[String]> {
        let mut all = self.exports.iter().chain(&self.imports);
        let (_, path) = all.find(|(known, _)| known == name)?;
        Some(path)
    }

    /// The paths of all that its code uses.
    fn used(&self) -> Vec<Vec<String>> {
        let imported = self.imports.iter().map(|(_, path)| path.clone());
        let exported = self.exports.iter().filter(|(name, _)| self.names.contains(name));
        let named = self.paths.iter().map(|path| {
            let target = path.split_first().and_then(|(first, rest)| {
                let whole: Vec<String> = self.target(first)?.iter().chain(rest).cloned().collect();
                Some(whole)
            });
            target.unwrap_or_else(|| path.clone())
        });
        imported
            .chain(exported.map(|(_, path)| path.clone()))
            .chain(named)
            .collect()
    }
}

/// A line without its comment and without the places in which what it declares is visible.
fn code(line: &str) -> String {
    let line = line.split_once("//").map_or(line, |(code, _)| code);
    line.split_once("pub(in ").map_or_else(
        || line.to_owned(),
        |(before, rest)| format!("{before}pub{}", rest.split_once(')').map_or("", |(_, rest)| rest)),
    )
}

/// Whether a line begins with `pub`, and what follows.
fn after_visibility(line: &str) -> (bool, &str) {
    let line = line.trim_start();
    let Some(rest) = line.strip_prefix("pub") else {
        return (false, line);
    };
    let rest = match rest.strip_prefix('(') {
        Some(place) => place.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    (true, rest.trim_start())
}

/// Whether a line declares a module.
fn is_module(line: &str) -> bool {
    after_visibility(line).1.starts_with("mod ")
}

fn segments(path: &str) -> Vec<String> {
    let parts = path.split("::").map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The names of a tree of imports below `prefix`, with their paths.
fn leaves(prefix: &[String], tree: &str, names: &mut Vec<(String, Vec<String>)>) {
    for part in branches(tree) {
        let (path, inner) = match part.split_once('{') {
            Some((head, rest)) => (head, rest.rsplit_once('}').map(|(inner, _)| inner)),
            None => (part, None),
        };
        let (path, alias) = path
            .split_once(" as ")
            .map_or((path, None), |(path, alias)| (path, Some(alias)));
        let mut path: Vec<String> = prefix.iter().cloned().chain(segments(path)).collect();
        if let Some(inner) = inner {
            leaves(&path, inner, names);
            continue;
        }
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last() {
            let name = alias.map_or(last.as_str(), str::trim).to_owned();
            names.push((name, path));
        }
    }
}

/// The parts of a tree between its outermost commas.
fn branches(tree: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let outermost = |character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    tree.split(outermost)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// The module that defines what a path names in a module; none for a module itself and for what
/// another crate defines.
fn definition(sources: &Sources, module: &[String], path: &[String], reexports: usize) -> Option<Module> {
    let mut base = module.to_vec();
    let mut rest = path;
    let (first, tail) = path.split_first()?;
    match first.as_str() {
        "crate" => {
            base.clear();
            rest = tail;
        }
        "self" => rest = tail,
        "super" => {
            while let Some((first, tail)) = rest.split_first()
                && first == "super"
            {
                base.pop();
                rest = tail;
            }
        }
        name => {
            if !sources.contains_key(&child(&base, name)) {
                return None;
            }
        }
    }
    while let Some((name, tail)) = rest.split_first() {
        let inner = child(&base, name);
        if sources.contains_key(&inner) {
            base = inner;
            rest = tail;
            continue;
        }
        let source = sources.get(&base)?;
        let target = source.target(name).filter(|_| reexports < MAX_REEXPORTS);
        let Some(target) = target else {
            return Some(base);
        };
        let further: Vec<String> = target.iter().chain(tail).cloned().collect();
        return definition(sources, &base, &further, reexports + 1);
    }
    None
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The circles of a crate's files.
fn circles(sources: &Sources) -> BTreeSet<BTreeSet<&Module>> {
    let mut used: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for (module, source) in sources {
        let found = source.used().into_iter();
        let found = found.filter_map(|path| definition(sources, module, &path, 0));
        let known = found.filter_map(|other| sources.get_key_value(&other).map(|(key, _)| key));
        used.insert(module, known.filter(|other| *other != module).collect());
    }
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        sources.keys().map(|module| (module, reached(&used, module))).collect();
    let leads = |from: &Module, to: &Module| reached.get(from).is_some_and(|others| others.contains(to));
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let circle: BTreeSet<&Module> = others.iter().copied().filter(|other| leads(other, module)).collect();
        if circle.contains(module) {
            circles.insert(circle);
        }
    }
    circles
}

/// All modules that one uses, by way of others too.
fn reached<'a>(used: &BTreeMap<&'a Module, BTreeSet<&'a Module>>, module: &'a Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut left = vec![module];
    while let Some(module) = left.pop() {
        for other in used.get(module).into_iter().flatten().copied() {
            if reached.insert(other) {
                left.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources = files
            .iter()
            .map(|(file, text)| (module_of(file).unwrap().1, Source::of(text)));
        let sources: Sources = sources.collect();
        let circles = circles(&sources);
        let names =
            |circle: &BTreeSet<&Module>| -> Vec<String> { circle.iter().map(|module| module.join("/")).collect() };
        circles.iter().map(names).collect()
    }

    #[test]
    fn no_crate_of_the_agent_has_a_circle_of_many_files() {
        check().unwrap();
    }

    #[test]
    fn files_that_use_each_other_by_imports_and_by_paths_are_a_circle() {
        let files = [
            (
                "a/src/lib.rs",
                "pub mod one;\npub mod two;\npub mod three;\npub mod four;\n",
            ),
            (
                "a/src/one.rs",
                "use crate::{\n    two::{Two, self},\n};\nfn f() { two::g() }\n",
            ),
            ("a/src/two.rs", "pub struct Two;\npub fn g() { super::three::h() }\n"),
            ("a/src/three.rs", "pub fn h() { crate::one::f() }\n"),
            ("a/src/four.rs", "use super::one::f;\n"),
        ];
        assert_eq!(circles_of(&files), [["one", "three", "two"]]);
    }

    #[test]
    fn comments_tests_and_lists_of_modules_make_no_circle() {
        let files = [
            ("a/src/lib.rs", "mod list;\nmod main_part;\n"),
            (
                "a/src/list.rs",
                "mod inner;\npub use inner::Inner;\npub const C: u8 = 0;\n",
            ),
            (
                "a/src/list/inner.rs",
                "use super::C;\npub(in crate::list) struct Inner;\n",
            ),
            (
                "a/src/main_part.rs",
                "use crate::list::Inner;\n// crate::list::C\n#[cfg(test)]\nmod tests {\n    use crate::list::C;\n}\n",
            ),
        ];
        assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
        let mut uses = files;
        uses[1].1 = "mod inner;\npub use inner::Inner;\npub const C: u8 = 0;\nfn f(_: Inner) {}\n";
        assert_eq!(circles_of(&uses), [["list", "list/inner"]]);
    }

    #[test]
    fn programs_and_tests_are_no_modules_of_a_library() {
        assert_eq!(module_of("agent/src/main.rs"), None);
        assert_eq!(module_of("agent/src/plan/tests.rs"), None);
        assert_eq!(module_of("agent/tests/suite/main.rs"), None);
        let module = module_of("agent/attach/src/graft/scan.rs").unwrap();
        assert_eq!(
            module,
            ("agent/attach/src".to_owned(), child(&["graft".to_owned()], "scan"))
        );
        assert_eq!(module_of("agent/src/lib.rs").unwrap().1, Module::new());
    }
}
