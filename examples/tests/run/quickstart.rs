//! Tests of the quickstart.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::example::{Example, get};

/// The most crates that a new user's first command may compile.
const MOST_CRATES: usize = 60;

/// Returns the names and versions of the crates that cargo compiles for the quickstart.
fn crates() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "tower-quota-quickstart"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    let tree = String::from_utf8(output.stdout).unwrap();
    // A crate without its path, and without the mark of a repeated crate.
    let crates = tree.lines().map(|line| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    });
    crates.collect()
}

#[test]
fn quickstart_compiles_few_crates() {
    let crates = crates();
    assert!(
        crates.len() <= MOST_CRATES,
        "{} crates: {crates:#?}",
        crates.len()
    );
    let has = |name: &str| crates.iter().any(|id| id.starts_with(&format!("{name} v")));
    assert!(has("axum"), "{crates:#?}");
    for absent in ["redis", "tonic", "rustls", "jsonwebtoken"] {
        assert!(!has(absent), "{absent} is compiled: {crates:#?}");
    }
}

#[test]
fn quickstart_limits_a_client() {
    let example = Example::start("quickstart", &[]);
    let expected = [
        "ratelimit-policy: \"burst\";q=5;w=3",
        "\r\nratelimit: \"burst\";r=4;t=2",
        "\r\n\r\nhello\n",
    ];
    example.expect(&get("/"), 200, &expected);
    let refused = example.until(|_| get("/"), |status, _| status == 429);
    assert!(
        refused.contains("content-type: application/problem+json"),
        "{refused}"
    );
    assert!(
        refused.contains("\r\nretry-after: ") && !refused.contains("\r\nretry-after: 0\r\n"),
        "{refused}"
    );
}
