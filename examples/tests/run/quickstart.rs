//! Tests of the quickstart: the crates that it compiles, and its answers.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::example::{Example, get};

/// The most crates that a new user's first command may compile.
const MOST_CRATES: usize = 80;

/// The crates that cargo compiled for the quickstart, by the command in the README.
struct Built {
    program: PathBuf,
    /// Each crate once: its id, and its name in JSON.
    crates: Vec<(String, String)>,
}

impl Built {
    fn new() -> Self {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        cargo.args(["build", "--quiet", "--example", "quickstart", "--message-format", "json"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let output = cargo.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        let (mut program, mut crates) = (None, Vec::new());
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            crates.push((message["package_id"].to_string(), message["target"]["name"].to_string()));
            program = message["executable"].as_str().map(PathBuf::from).or(program);
        }
        // A build script is no crate of its own.
        crates.sort_unstable();
        crates.dedup_by(|one, other| one.0 == other.0);
        Self { program: program.unwrap(), crates }
    }
}

#[test]
fn quickstart_compiles_few_crates() {
    let Built { crates, .. } = Built::new();
    assert!(crates.len() <= MOST_CRATES, "{} crates: {crates:#?}", crates.len());
    for absent in ["\"redis\"", "\"tonic\"", "\"rustls\"", "\"jsonwebtoken\""] {
        assert!(!crates.iter().any(|(_, name)| name == absent), "{absent} is compiled: {crates:#?}");
    }
}

#[test]
fn quickstart_limits_a_client() {
    let example = Example::run(&Built::new().program, &[]);
    let expected = ["ratelimit-policy: \"burst\";q=5;w=3", "\r\nratelimit: \"burst\";r=4;t=2", "\r\n\r\nhello\n"];
    example.expect(&get("/"), 200, &expected);
    let refused = example.until(|_| get("/"), |status, _| status == 429);
    assert!(refused.contains("content-type: application/problem+json"), "{refused}");
    assert!(refused.contains("\r\nretry-after: ") && !refused.contains("\r\nretry-after: 0\r\n"), "{refused}");
}
