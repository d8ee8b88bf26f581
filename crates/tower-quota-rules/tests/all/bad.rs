//! Tests the messages for the bad documents in `bad`. A file next to the document has the expected messages.
//!
//! With `REWRITE=1`, the test writes the expected messages and `docs/reference/bad_rules.md`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may panic"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tower_quota_rules::{Problems, Rules};

fn documents() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let files = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path());
    let mut documents: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension != "txt"))
        .collect();
    documents.sort();
    documents
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("a name")
}

/// Returns all problems of a document with errors, or the warnings of a valid document.
fn problems(text: &str) -> Problems {
    match Rules::parse(text) {
        Ok(rules) => rules.warnings().clone(),
        Err(problems) => problems,
    }
}

/// Compares a text with a file, or writes the file.
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

/// The problems on the page, each with a document and the position in the document.
const SHOWN: [(&str, usize); 20] = [
    ("01-misspelt-field.yaml", 0),
    ("02-not-a-quota.yaml", 0),
    ("02-not-a-quota.yaml", 3),
    ("03-missing-field.yaml", 0),
    ("05-duplicate-field.yaml", 1),
    ("09-alias.yaml", 0),
    ("10-unknown-names.yaml", 1),
    ("11-circle-of-tiers.yaml", 0),
    ("13-expressions.yaml", 1),
    ("14-paths.yaml", 0),
    ("14-paths.yaml", 3),
    ("15-never-reached.yaml", 0),
    ("16-no-limits.yaml", 0),
    ("17-refuses-everything.yaml", 0),
    ("17-refuses-everything.yaml", 2),
    ("18-penalty-of-all.yaml", 0),
    ("19-wait-on-window.yaml", 0),
    ("20-keys.yaml", 2),
    ("21-proxies.yaml", 1),
    ("23-not-addresses.yaml", 0),
];

/// Returns the page `bad_rules.md`.
fn page() -> String {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/bad")
            .join(name);
        let text = fs::read_to_string(&path).expect("a text");
        (problems(&text), text)
    };
    let (first, text) = read("01-misspelt-field.yaml");
    let mut page = format!(
        "# Bad rules\n\nEach message has the place and the fix:\n\n```text\n{}\n```\n\n\
         You get all errors of a document at once. Twenty instructive mistakes, of those in `crates/tower-quota-rules/tests/bad`:\n\n\
         | you write | message | fix |\n|---|---|---|\n",
        first.render(&text, "rules.yaml").trim_end()
    );
    for (name, position) in SHOWN {
        let (problems, text) = read(name);
        let problem = problems.iter().nth(position).expect("a problem");
        let line = problem.line.expect("a line") as usize - 1;
        let line = text.lines().nth(line).expect("a line").trim();
        let help = problem.help.as_deref().expect("a fix");
        writeln!(page, "| `{line}` | {} | {help} |", problem.message).expect("a string");
    }
    page
}

#[test]
fn bad_documents_are_explained() {
    let documents = documents();
    assert!(documents.len() >= 20);
    for path in &documents {
        let text = fs::read_to_string(path).expect("a text");
        let said = problems(&text).render(&text, name(path));
        assert!(!said.is_empty(), "{} is not bad", name(path));
        compare(&path.with_extension("txt"), &said);
    }
    compare(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/bad_rules.md"),
        &page(),
    );
}
