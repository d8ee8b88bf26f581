//! Reads the files of a folder, and notices changes.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::EnvoyConfig;
use super::problem::{Place, Problems};

const DEEPEST_FOLDER: usize = 8;

/// The files of a path, read again and again.
///
/// ```no_run
/// use tower_quota_server::envoy::EnvoyFiles;
///
/// # fn example() -> Result<(), tower_quota_server::envoy::Problems> {
/// let (mut files, config) = EnvoyFiles::open("ratelimit/", false)?;
/// if let Some(changed) = files.poll() {
///     println!("{} limits, {} after a change", config.limits(), changed?.limits());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EnvoyFiles {
    path: PathBuf,
    merge: bool,
    texts: Texts,
}

/// The name and the text of each file, and the problems of unreadable files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Texts {
    files: Vec<(String, String)>,
    problems: Problems,
}

impl EnvoyFiles {
    /// Reads a file, or all files in a folder and its subfolders in the order of their paths.
    ///
    /// Leaves out names that begin with a dot, such as the folders behind the links of a Kubernetes `ConfigMap`. `merge`
    /// allows a domain in several files.
    ///
    /// # Errors
    /// Returns every problem of all files, and of a folder without files.
    pub fn open(path: impl Into<PathBuf>, merge: bool) -> Result<(Self, EnvoyConfig), Problems> {
        let (files, config) = Self::watch(path, merge);
        Ok((files, config?))
    }

    /// Reads the files as [`open`](Self::open) does. Files with problems can be read again too.
    pub fn watch(path: impl Into<PathBuf>, merge: bool) -> (Self, Result<EnvoyConfig, Problems>) {
        let path = path.into();
        let texts = Texts::read(&path);
        let config = texts.parse(merge);
        (Self { path, merge, texts }, config)
    }

    /// Reads the files again. Returns `None` if they are the same as before.
    ///
    /// Compares texts, so that a link to other files is a change, and a new time of a file is no change. The call blocks.
    pub fn poll(&mut self) -> Option<Result<EnvoyConfig, Problems>> {
        let texts = Texts::read(&self.path);
        if texts == self.texts {
            return None;
        }
        self.texts = texts;
        Some(self.texts.parse(self.merge))
    }
}

impl Texts {
    fn read(path: &Path) -> Self {
        let mut texts = Self::default();
        let mut paths = Vec::new();
        if path.is_file() {
            paths.push(path.to_owned());
        } else if let Err(error) = collect(path, 0, &mut paths) {
            texts.problem(
                path,
                format_args!("{error}: check the path and its permissions"),
            );
        } else if paths.is_empty() {
            let message = "the folder has no files: add a YAML file with a domain and its limits";
            texts.problem(path, message);
        }
        paths.sort();
        for path in paths {
            match fs::read_to_string(&path) {
                Ok(text) => texts.files.push((path.display().to_string(), text)),
                Err(error) => {
                    texts.problem(
                        &path,
                        format_args!("{error}: check the file and its permissions"),
                    );
                }
            }
        }
        texts
    }

    fn problem(&mut self, path: &Path, message: impl core::fmt::Display) {
        let file = path.display().to_string();
        self.problems.add(&file, Place::default(), message);
    }

    fn parse(&self, merge: bool) -> Result<EnvoyConfig, Problems> {
        let files = self.files.iter().map(|(name, text)| (&**name, &**text));
        EnvoyConfig::read(files, merge, self.problems.clone())
    }
}

/// Adds the paths of all files. Follows links, because a `ConfigMap` is a folder of links.
fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link may lead back, so deeper folders stay problems.
        if path.is_dir() && depth < DEEPEST_FOLDER {
            collect(&path, depth + 1, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
