//! Bad documents, and what is said of each: `bad/*` with the expected text beside it.
//!
//! With `REWRITE=1` the expected texts are written, and so is `docs/reference/bad_rules.md`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tower_quota_rules::{Format, Rules};

fn documents() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let files = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path());
    let mut documents: Vec<PathBuf> = files
        .filter(|path| Format::of_path(path).is_some())
        .collect();
    documents.sort();
    documents
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("a name")
}

/// Returns what is said of a document: all problems if it has errors, its warnings otherwise.
fn said(path: &Path, text: &str) -> String {
    match Rules::parse(text, Format::of_path(path).expect("a format")) {
        Ok(rules) => rules.warnings().render(text, name(path)),
        Err(problems) => problems.render(text, name(path)),
    }
}

/// Compares a text with a file, or writes it.
fn compare(path: &Path, text: &str) {
    if std::env::var_os("REWRITE").is_some() {
        fs::write(path, text).expect("written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{}: run with REWRITE=1 and read the difference",
        path.display()
    );
}

#[test]
fn bad_documents_are_explained() {
    let mut page = String::from(
        "# Bad documents\n\nWhat `Rules::parse` says of each. This page is written by the test that checks it: \
         `REWRITE=1 cargo test -p tower-quota-rules --test bad`.\n",
    );
    let documents = documents();
    assert!(documents.len() >= 20);
    for path in &documents {
        let text = fs::read_to_string(path).expect("a text");
        let said = said(path, &text);
        assert!(!said.is_empty(), "{} is not bad", name(path));
        compare(&path.with_extension("txt"), &said);
        let language = path
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default();
        let title = name(path);
        write!(
            page,
            "\n## {title}\n\n```{language}\n{text}```\n\n```text\n{}\n```\n",
            said.trim_end()
        )
        .expect("a string");
    }
    compare(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/bad_rules.md"),
        &page,
    );
}
