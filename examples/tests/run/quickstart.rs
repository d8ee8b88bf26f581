//! Tests of the quickstart.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::example::{Example, get};

/// The most crates that a new user's first command may compile.
const MOST_CRATES: usize = 80;

/// Returns the ids of the crates that cargo compiles for the quickstart from the root.
///
/// They are checked and not compiled to the end: the number is the same.
fn crates() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args([
            "check",
            "--quiet",
            "--example",
            "quickstart",
            "--message-format",
            "json",
        ])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let artifacts = messages.filter(|message| message["reason"] == "compiler-artifact");
    // A build script has the id of its crate.
    artifacts
        .map(|artifact| artifact["package_id"].to_string())
        .collect()
}

#[test]
fn quickstart_compiles_few_crates() {
    let crates = crates();
    assert!(
        crates.len() <= MOST_CRATES,
        "{} crates: {crates:#?}",
        crates.len()
    );
    let has = |name: &str| crates.iter().any(|id| id.contains(&format!("#{name}@")));
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
