//! Tests that every index lists the guides, and that links lead to files. The doc tests of the crate compile the code of
//! the guides.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages of a folder.
fn pages(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

/// Returns every page for people.
fn all_pages() -> impl Iterator<Item = PathBuf> {
    let folders = [
        "",
        "docs",
        "docs/guide",
        "docs/reference",
        "docs/measurements",
        "examples",
        "ops",
    ];
    folders.into_iter().flat_map(pages)
}

#[test]
fn guides_are_in_every_index() {
    let (index, front) = (
        read("docs/README.md"),
        read("crates/tower-quota/src/lib.rs"),
    );
    let modules = read("crates/tower-quota/src/guide.rs");
    let links = read("docs/guide/links.txt");
    let guides = pages("docs/guide");
    assert!(!guides.is_empty());
    for guide in guides {
        let name = guide.file_stem().unwrap().to_str().unwrap();
        assert!(
            index.contains(&format!("(guide/{name}.md)")),
            "docs/README.md lacks {name}"
        );
        assert!(
            front.contains(&format!("guide::{name}")),
            "the crate's front page lacks {name}"
        );
        assert!(
            modules.contains(&format!(" {name};")),
            "the module `guide` lacks {name}"
        );
        assert!(
            links.contains(&format!("[{name}]: ")),
            "docs/guide/links.txt lacks {name}"
        );
    }
    for folder in ["reference", "measurements"] {
        for page in pages(&format!("docs/{folder}")) {
            let name = page.file_name().unwrap().to_str().unwrap();
            assert!(
                index.contains(&format!("({folder}/{name})")),
                "docs/README.md lacks {name}"
            );
        }
    }
}

/// The published documentation contains the guides alone, so each guide links by names that `links.txt`, `drawing.txt`
/// or `guide.rs` define again.
#[test]
fn links_of_guides_are_published() {
    let links = ["docs/guide/links.txt", "docs/guide/drawing.txt"];
    let modules = links.map(read).concat();
    let files = read("crates/tower-quota/src/guide.rs");
    for guide in pages("docs/guide") {
        let text = fs::read_to_string(&guide).unwrap();
        let shown = guide.display();
        for link in text.split("](").skip(1) {
            let is_published = link.starts_with("https://") || link.starts_with('#');
            assert!(is_published, "{shown}: {link:.40}: write [text][name]");
        }
        for line in text.lines() {
            let Some((name, target)) = definition(line) else {
                continue;
            };
            let path = target.trim_start_matches("../");
            let has_module = modules.contains(&format!("[{name}]: "));
            let has_file = files.lines().any(|line| {
                line.trim_start().starts_with(&format!("\"{name}\": ")) && line.contains(path)
            });
            assert!(
                has_module || has_file,
                "{shown}: guide.rs lacks {name}: {target}"
            );
        }
    }
}

/// Returns the name and the target of a link's definition.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

#[test]
fn clients_guide_shows_tested_files() {
    let guide = read("docs/guide/clients.md");
    let shown = read("examples/clients/fetch_with_retry.mjs");
    assert!(guide.contains(&format!("\n{shown}```")));
    for file in ["fetch_with_retry.mjs", "open_with_retry.py", "retry.go"] {
        let path = format!("examples/clients/{file}");
        assert!(guide.contains(&format!("]: ../../{path}\n")), "{file}");
        assert!(read(&path).lines().count() <= 30, "{file}");
    }
}

/// Code that needs a feature, with the crate and the feature.
const FEATURES: [(&str, &str, &str); 24] = [
    ("RequestDecision", "tower-quota", "axum"),
    ("with_connect_info", "tower-quota", "axum"),
    ("path_parameter(", "tower-quota", "axum"),
    ("key::route(", "tower-quota", "axum"),
    (": Flagged", "tower-quota", "axum"),
    (": Reservation", "tower-quota", "axum"),
    ("tonic::", "tower-quota", "tonic"),
    (".calendar(", "tower-quota", "calendar"),
    ("jwt_claim(", "tower-quota", "jwt"),
    ("Leased", "tower-quota", "lease"),
    ("Regional", "tower-quota", "lease"),
    ("publish_stats", "tower-quota", "metrics"),
    ("RedisStore", "tower-quota", "redis"),
    ("ThrottleLayer", "tower-quota", "throttle"),
    ("TopWindow", "tower-quota", "top"),
    ("count_busy_clients", "tower-quota", "top"),
    ("extract::ws", "axum", "ws"),
    ("#[tokio::main]", "tokio", "macros"),
    ("#[tokio::main]", "tokio", "rt-multi-thread"),
    ("TcpListener", "tokio", "net"),
    ("tokio::signal", "tokio", "signal"),
    ("tokio::sync", "tokio", "sync"),
    ("tokio::time", "tokio", "time"),
    ("tower::ServiceExt", "tower", "util"),
];

#[test]
fn examples_name_their_dependencies() {
    let manifest = read("crates/tower-quota/Cargo.toml");
    for folder in [
        "examples",
        "examples/quickstart",
        "examples/rules_in_consul",
    ] {
        let dependencies = read(Path::new(folder).join("Cargo.toml"));
        let known: Vec<_> = dependencies
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name)
            .filter(|name| !["name", "version", "path"].contains(name))
            .collect();
        let examples = fs::read_dir(root().join(folder)).unwrap();
        for path in examples.map(|file| file.unwrap().path()) {
            if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("lib.rs") {
                check_example(&path, &known, &manifest);
            }
        }
    }
}

/// Checks that the manifest lines of an example name all crates and features of the code.
fn check_example(path: &Path, known: &[&str], manifest: &str) {
    let code = fs::read_to_string(path).unwrap();
    let path = path.display();
    let lines: Vec<_> = code
        .lines()
        .filter_map(|line| line.strip_prefix("//!     "))
        .filter_map(|line| line.split_once(" = "))
        .collect();
    let named = |name: &str| {
        let line = lines.iter().find(|(named, _)| *named == name);
        line.map(|(_, version)| *version)
    };
    let version = named("tower-quota").unwrap_or_else(|| panic!("{path} names no crate"));
    for feature in features(version) {
        assert!(
            manifest.contains(&format!("\n{feature} = [")),
            "{path}: no feature {feature}"
        );
    }
    for name in known.iter().filter(|name| uses(&code, name)) {
        assert!(named(name).is_some(), "{path} lacks {name}");
    }
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    for (item, name, feature) in FEATURES {
        if code.lines().filter(is_code).any(|line| line.contains(item)) {
            // `tls` enables `redis`.
            let is_named = features(named(name).unwrap_or_default())
                .any(|named| named == feature || (named, feature) == ("tls", "redis"));
            assert!(is_named, "{path}: {item} needs {feature} of {name}");
        }
    }
}

/// Returns the features of a dependency in a line of a manifest.
fn features(version: &str) -> impl Iterator<Item = &str> {
    let list = version
        .split_once("features = [")
        .map_or("", |(_, list)| list);
    list.split('"').skip(1).step_by(2)
}

/// Returns whether a line of code contains a path that begins with the name of a crate.
fn uses(code: &str, name: &str) -> bool {
    let path = format!("{}::", name.replace('-', "_"));
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split([' ', '(', '<', '&', '[', '!']))
        .any(|word| word.starts_with(&path))
}

#[test]
fn relative_links_lead_to_files() {
    for page in all_pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let file = page
                .parent()
                .unwrap()
                .join(link.split('#').next().unwrap_or_default());
            assert!(file.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
}

#[test]
fn pages_name_existing_scripts_and_sources() {
    for page in all_pages().chain([root().join(".ci/run")]) {
        let text = fs::read_to_string(&page).unwrap();
        let is_part = |symbol: char| symbol.is_ascii_alphanumeric() || "/_.-".contains(symbol);
        for path in text.split(|symbol| !is_part(symbol)) {
            let path = path.trim_end_matches('.');
            let is_named = path.starts_with("scripts/") || path.starts_with("crates/");
            assert!(
                !is_named || root().join(path).exists(),
                "{}: {path} does not exist",
                page.display()
            );
        }
    }
}

#[test]
fn readme_names_existing_items() {
    let interface: String = fs::read_dir(root().join("docs/api"))
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let readme = read("README.md");
    let (_, table) = readme.split_once("| you want | write |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for code in table.split('`').skip(1).step_by(2) {
        let is_part = |symbol: char| symbol.is_ascii_alphanumeric() || "_-".contains(symbol);
        for name in code.split(|symbol| !is_part(symbol)) {
            let is_other =
                ["user", "User", "login", "Duration", "from_secs", "Some"].contains(&name);
            let is_item = name.len() > 3 && !name.contains('-') && !is_other;
            let is_number = name.starts_with(|symbol: char| symbol.is_ascii_digit());
            assert!(
                !is_item || is_number || interface.contains(&format!("::{name}")),
                "{name} in {code} is not in docs/api"
            );
        }
    }
}

/// Returns the targets of links and definitions, except targets on the same page or on the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let defined = text.lines().filter_map(|line| {
        line.strip_prefix('[')?
            .split_once("]: ")
            .map(|(_, target)| target)
    });
    inline
        .chain(defined)
        .filter(|link| !link.starts_with('#') && !link.contains("://"))
}
