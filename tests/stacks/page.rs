//! Tests that the page about stacks names exactly the tests in this folder.

use crate::each_layer::TITLES;

const PAGE: &str = include_str!("../../docs/reference/stacks.md");

/// The files whose tests the page names.
const SOURCES: [&str; 8] = [
    include_str!("axum_apps.rs"),
    include_str!("axum_streams.rs"),
    include_str!("grpc.rs"),
    include_str!("inner_layers.rs"),
    include_str!("outer_layers.rs"),
    include_str!("pairs.rs"),
    include_str!("together.rs"),
    include_str!("waiting.rs"),
];

#[test]
fn documented_layers_match_tests() {
    let rows: Vec<&str> = PAGE
        .lines()
        .skip_while(|line| *line != "## Each layer")
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .map_while(|line| line.strip_prefix("| ")?.split(" | ").next())
        .collect();
    let titles: Vec<&str> = TITLES.iter().map(|(_, title)| *title).collect();
    assert_eq!(rows, titles);
}

#[test]
fn documented_tests_match_stacks() {
    let mut run: Vec<&str> = SOURCES.iter().flat_map(|source| tests_of(source)).collect();
    // Other code on the page is no single word of lower case with an underscore.
    let mut named: Vec<&str> = PAGE
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| {
            code.contains('_') && code.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        })
        .collect();
    run.sort_unstable();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named, run);
}

/// Returns the names of a file's tests: functions, and the rows of a macro that makes them.
fn tests_of(source: &str) -> Vec<&str> {
    let functions = source.split("test]\n").skip(1).filter_map(|rest| {
        let name = rest
            .strip_prefix("async ")
            .unwrap_or(rest)
            .strip_prefix("fn ")?;
        name.split_once('(').map(|(name, _)| name)
    });
    let rows = source
        .split_once("\nothers_proceed! {\n")
        .into_iter()
        .flat_map(|(_, rest)| {
            rest.lines()
                .map_while(|line| line.trim().split_once(": ").map(|(name, _)| name))
        });
    functions.chain(rows).collect()
}
