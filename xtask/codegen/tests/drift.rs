//! The committed files that are generated of the catalogue and of the table of profilers are those
//! that these give.

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{InputCount, Listing, ResultType};
use flopwatch_codegen::{endings, python, typescript};

/// Where the viewer's types are kept, as `cargo xtask codegen` writes them.
const TYPESCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/generated/catalogue.ts");

/// Where the endings of profilers' files are kept, as `cargo xtask codegen` writes them.
const ENDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/generated/endings.ts");

/// Where the Python package's types are kept, as `cargo xtask codegen` writes them.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/flopwatch/_catalogue.pyi");

#[test]
fn the_viewers_types_are_those_of_the_catalogue() {
    let made = typescript().unwrap();
    assert!(
        std::fs::read_to_string(TYPESCRIPT).unwrap_or_default() == made,
        "web/src/generated/catalogue.ts drifted: run `cargo xtask codegen`"
    );
    for definition in CATALOGUE {
        assert!(made.contains(&format!("\"name\": \"{}\"", definition.name)));
    }
    assert_eq!(Listing::all().len(), CATALOGUE.len());
}

#[test]
fn the_viewers_endings_are_those_of_the_profilers_files() {
    let made = endings().unwrap();
    assert!(
        std::fs::read_to_string(ENDINGS).unwrap_or_default() == made,
        "web/src/generated/endings.ts drifted: run `cargo xtask codegen`"
    );
}

#[test]
fn pythons_types_are_those_of_the_catalogue() {
    let made = python().unwrap();
    assert!(
        std::fs::read_to_string(PYTHON).unwrap_or_default() == made,
        "python/flopwatch/_catalogue.pyi drifted: run `cargo xtask codegen`"
    );
    for definition in CATALOGUE {
        // Two clients ask for any, one and several at once; a capture is asked for what one is
        // enough for.
        let signatures = made.matches(&format!("Literal[\"{}\"]", definition.name)).count();
        let expected = match (definition.result, definition.inputs) {
            (ResultType::File { .. }, _) => 0,
            (ResultType::Json { .. }, InputCount::Two) => 3,
            (ResultType::Json { .. }, _) => 5,
        };
        assert_eq!(signatures, expected, "{}", definition.name);
    }
}
