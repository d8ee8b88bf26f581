//! Reads the files of a folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::EnvoyConfig;
use super::problem::{Place, Problems};

const DEEPEST_FOLDER: usize = 8;

impl EnvoyConfig {
    /// Reads a file, or all files in a folder and its subfolders in the order of their paths.
    ///
    /// Leaves out names that begin with a dot, such as the folders behind the links of a Kubernetes `ConfigMap`. `merge`
    /// allows a domain in several files.
    ///
    /// # Errors
    /// Returns every problem of all files, and of a folder without files.
    pub fn load(path: &Path, merge: bool) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut paths = Vec::new();
        if path.is_file() {
            paths.push(path.to_owned());
        } else if let Err(error) = collect(path, 0, &mut paths) {
            let message = format!("{error}: check the path and its permissions");
            problems.add(&path.display().to_string(), Place::default(), message);
        } else if paths.is_empty() {
            let message = "the folder has no files: add a YAML file with a domain and its limits";
            problems.add(&path.display().to_string(), Place::default(), message);
        }
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            match fs::read_to_string(&path) {
                Ok(text) => files.push((name, text)),
                Err(error) => {
                    let message = format!("{error}: check the file and its permissions");
                    problems.add(&name, Place::default(), message);
                }
            }
        }
        let files = files.iter().map(|(name, text)| (&**name, &**text));
        Self::read(files, merge, problems)
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
