//! The Containerfiles build where there is an engine; here they are checked against what they name.

use flopwatch_toolchain::{debian, nsys, project};
use std::fs;
use std::path::Path;

const FILES: [&str; 3] = ["operator", "agent", "nsys"];

struct Stage {
    name: String,
    text: String,
}

fn read(name: &str) -> String {
    let path = project::root().unwrap().join(format!("images/{name}.Containerfile"));
    fs::read_to_string(path).unwrap().replace("\\\n", " ")
}

/// The stages, in order, each with its instructions.
fn stages(text: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(from) = line.strip_prefix("FROM ") {
            let name = from.split_once(" AS ").map_or("", |(_, name)| name).to_owned();
            stages.push(Stage {
                name,
                text: String::new(),
            });
        } else if let Some(stage) = stages.last_mut() {
            stage.text.push_str(line);
            stage.text.push('\n');
        }
    }
    stages
}

/// Where `cargo xtask release` is told to put programs.
const OUT: &str = "--output /out";

/// The packages of which a stage builds the programs, which have their names.
fn built(stage: &Stage) -> Vec<&str> {
    let lines = stage.text.lines();
    let lists = lines.filter_map(|line| line.strip_prefix("RUN cargo xtask release ")?.strip_suffix(OUT));
    lists.flat_map(str::split_whitespace).collect()
}

#[test]
fn every_copied_path_exists() {
    for name in FILES {
        let text = read(name);
        let stages = stages(&text);
        for (index, stage) in stages.iter().enumerate() {
            for copy in stage.text.lines().filter_map(|line| line.strip_prefix("COPY ")) {
                let words: Vec<&str> = copy.split_whitespace().collect();
                let Some(from) = words[0].strip_prefix("--from=") else {
                    let path = project::root().unwrap().join(words[0]);
                    assert!(path.exists(), "{name}: {} is not in the repository", words[0]);
                    continue;
                };
                let source = stages[..index].iter().find(|stage| stage.name == from);
                let source = source.unwrap_or_else(|| panic!("{name}: no stage {from} before this COPY"));
                let path = Path::new(words[1]);
                let file = path.file_name().unwrap().to_str().unwrap();
                let made = if path.starts_with("/out") {
                    built(source).contains(&file.trim_end_matches(".debug"))
                } else {
                    source.text.contains(&format!("mkdir {}", words[1]))
                        || source.text.split_whitespace().any(|word| word == words[1])
                };
                assert!(made, "{name}: nothing makes {} in stage {from}", words[1]);
            }
        }
    }
}

/// Tests that start cargo.
mod crate_tests {
    use super::*;

    #[test]
    fn every_built_package_is_in_the_workspace() {
        let metadata = project::cargo()
            .unwrap()
            .args(["metadata", "--no-deps", "--format-version=1"])
            .output()
            .unwrap();
        for name in FILES {
            for stage in stages(&read(name)) {
                for package in built(&stage) {
                    assert!(
                        metadata.contains(&format!("\"name\":\"{package}\"")),
                        "{name}: no package {package}"
                    );
                }
            }
        }
    }
}

#[test]
fn they_build_with_the_pinned_tools_and_libraries() {
    let toolchain = fs::read_to_string(project::root().unwrap().join("rust-toolchain.toml")).unwrap();
    for name in ["operator", "agent"] {
        let text = read(name);
        let version = text
            .split("/rust:")
            .nth(1)
            .and_then(|rest| rest.split('-').next())
            .unwrap();
        assert!(
            toolchain.contains(&format!("\"{version}")),
            "{name}: Rust {version} is not the pinned one"
        );
    }
    let agent = read("agent");
    assert!(agent.contains("python3-venv"), "what fetches CMake is missing");
    assert!(
        agent.contains(&debian::NSYS_LIBRARIES.join(" ")),
        "the importer's libraries differ"
    );
}

#[test]
fn base_images_are_given_by_digest_and_nothing_else() {
    for name in FILES {
        let text = read(name);
        let bases: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next())
            .filter(|base| *base != "scratch")
            .collect();
        assert!(!bases.is_empty(), "{name}");
        for base in bases {
            let digest = base.split_once('@').map(|(_, digest)| digest).unwrap_or_default();
            let argument = digest.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            let argument = argument.unwrap_or_else(|| panic!("{name}: {base} has no digest"));
            // One with a default would be somebody's guess.
            assert!(
                text.lines().any(|line| line == format!("ARG {argument}")),
                "{name}: {argument}"
            );
        }
    }
}

#[test]
fn the_tools_image_holds_the_pinned_packages() {
    let text = read("nsys");
    for package in &nsys::BOOKWORM.packages {
        let (name, version) = (package.name, package.version);
        assert!(text.contains(&format!("{name}={version}")), "{name}");
        assert!(
            text.contains(&format!("{} {name}_{version}_amd64.deb", package.sha256)),
            "{name}"
        );
    }
    assert!(text.contains("sha256sum --check --strict"));
}
