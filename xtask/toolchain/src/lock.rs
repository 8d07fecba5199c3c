//! The list of what recipes take from PyPI, as it is committed: each package once, pinned, with the
//! sums of its files and the groups that hold it.
//!
//! ```text
//! numpy==2.4.6 \
//!     --hash=sha256:... \
//!     --hash=sha256:...
//!     # bench-h5py, python
//! ```

use std::collections::BTreeMap;

/// The list, below the repository's root.
pub const FILE: &str = "xtask/toolchain/requirements/locked.txt";
/// What [`FILE`] held when this program was built.
pub(crate) const COMMITTED: &str = include_str!("../requirements/locked.txt");
/// The first line of a list.
const HEAD: &str = "# `cargo xtask lock` writes this of pyproject.toml.\n";
/// What stands before the groups of the package that ends there.
const GROUPS: &str = "    # ";

/// The packages of `group` in a list, as a file of requirements that pip reads.
pub(crate) fn of(list: &str, group: &str) -> String {
    let mut held = String::new();
    let mut package = String::new();
    for line in list.lines() {
        if let Some(groups) = line.strip_prefix(GROUPS) {
            if groups.split(", ").any(|name| name == group) {
                held.push_str(&package);
            }
            package.clear();
        } else if !line.starts_with('#') {
            package.push_str(line);
            package.push('\n');
        }
    }
    held
}

/// One list of the groups' files of requirements, each beside its group's name.
pub fn merge(groups: &[(&str, String)]) -> String {
    // By name first: "numpy-x" stands before "numpy==", and after "numpy".
    let mut merged: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for (group, locked) in groups {
        for package in packages(locked) {
            let name = package.split("==").next().unwrap_or_default().to_owned();
            merged.entry((name, package)).or_default().push(group);
        }
    }
    let mut list = HEAD.to_owned();
    for ((_, package), groups) in merged {
        list.push_str(&package);
        list.push_str(GROUPS);
        list.push_str(&groups.join(", "));
        list.push('\n');
    }
    list
}

/// Each package of a file of requirements, with the lines of its sums.
fn packages(locked: &str) -> Vec<String> {
    let mut packages: Vec<String> = Vec::new();
    for line in locked.split_inclusive('\n') {
        match packages.last_mut() {
            Some(package) if line.starts_with(' ') => package.push_str(line),
            _ => packages.push(line.to_owned()),
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Requirements;

    const TESTS: &str =
        "numpy==2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nscipy==1 \\\n    --hash=sha256:cc\n";
    const BENCH: &str = "numpy==2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nnumpy-x==1 \\\n    --hash=sha256:dd\nscipy==2 \\\n    --hash=sha256:ee\n";

    #[test]
    fn a_group_finds_what_was_locked_for_it_byte_for_byte() {
        let list = merge(&[("bench", BENCH.to_owned()), ("tests", TESTS.to_owned())]);
        assert_eq!(of(&list, "bench"), BENCH);
        assert_eq!(of(&list, "tests"), TESTS);
        assert_eq!(of(&list, "test"), "");
    }

    #[test]
    fn a_package_stands_once_unless_two_groups_have_other_versions_of_it() {
        let list = merge(&[("bench", BENCH.to_owned()), ("tests", TESTS.to_owned())]);
        assert_eq!(list.matches("numpy==2").count(), 1, "{list}");
        assert!(list.contains("--hash=sha256:bb\n    # bench, tests\n"), "{list}");
        assert!(list.contains("scipy==1") && list.contains("scipy==2"), "{list}");
    }

    #[test]
    fn the_committed_list_has_the_form_that_the_recipe_writes() {
        let groups = Requirements::ALL.iter().map(|group| (group.name(), group.locked()));
        assert_eq!(merge(&groups.collect::<Vec<_>>()), COMMITTED);
    }
}
