//! Reads the files of a folder, and notices changes.

use core::time::Duration;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::problem::{Place, Problems};
use super::{EnvoyConfig, yaml};
use crate::file::open;

const DEEPEST_FOLDER: usize = 8;
/// The most bytes of a file.
const LARGEST: u64 = 64 << 20;
/// The time between two looks at the files.
const POLL: Duration = Duration::from_secs(1);

/// The files of a path, read again and again.
///
/// ```no_run
/// use tower_quota_server::envoy::EnvoyFiles;
///
/// let mut files = EnvoyFiles::new("ratelimit/", false);
/// if let Some(Ok(config)) = files.poll() {
///     println!("{} limits", config.limits());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct EnvoyFiles {
    path: PathBuf,
    merge: bool,
    texts: Texts,
}

/// The name of each file, and its text or the problem.
type Texts = Vec<(String, Result<String, String>)>;

impl EnvoyFiles {
    /// Creates a reader of a file, or of all files in a folder and its subfolders in the order of their paths.
    ///
    /// Leaves out names that begin with a dot, such as the folders behind the links of a Kubernetes `ConfigMap`. `merge`
    /// allows a domain in several files.
    pub fn new(path: impl Into<PathBuf>, merge: bool) -> Self {
        Self {
            path: path.into(),
            merge,
            texts: Vec::new(),
        }
    }

    /// Reads the files. Returns `None` if they are the same as before.
    ///
    /// Compares texts, so that a link to other files is a change, and a new time of a file is no change. The call blocks.
    /// Every problem of all files is an error, and a folder without files too.
    pub fn poll(&mut self) -> Option<Result<EnvoyConfig, Problems>> {
        let texts = read(&self.path);
        if texts == self.texts {
            return None;
        }
        self.texts = texts;
        let roots = self.texts.iter().map(|(file, text)| {
            let root = match text {
                Ok(text) => yaml::read(text),
                Err(problem) => Err(Place::default().refuse(problem)),
            };
            (file.as_str(), root)
        });
        Some(EnvoyConfig::build(roots, self.merge))
    }

    /// Waits for a change of the files. The first call returns at once.
    #[expect(
        clippy::disallowed_methods,
        reason = "no call waits for the next look at the files"
    )]
    pub(crate) async fn next(&mut self) -> Result<EnvoyConfig, Problems> {
        loop {
            if !self.texts.is_empty() {
                tokio::time::sleep(POLL).await;
            }
            let mut files = self.clone();
            let polled = tokio::task::spawn_blocking(move || {
                let changed = files.poll();
                (files, changed)
            });
            let Ok((files, changed)) = polled.await else {
                // The runtime ends.
                return core::future::pending().await;
            };
            *self = files;
            if let Some(changed) = changed {
                return changed;
            }
        }
    }
}

fn read(path: &Path) -> Texts {
    let mut paths = Vec::new();
    let found = if path.is_file() {
        paths.push(path.to_owned());
        Ok(())
    } else {
        collect(path, 0, &mut paths)
    };
    paths.sort();
    let mut texts: Texts = paths.iter().map(|path| text(path)).collect();
    let problem = match found {
        Err(error) => format!("{error}: check the path and its permissions"),
        Ok(()) if texts.is_empty() => {
            "the folder has no files: add a YAML file with a domain and its limits".to_owned()
        }
        Ok(()) => return texts,
    };
    texts.push((path.display().to_string(), Err(problem)));
    texts
}

fn text(path: &Path) -> (String, Result<String, String>) {
    let mut text = String::new();
    let read = open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    let text = match read {
        Ok(length) if length as u64 == LARGEST => {
            Err("the file has 64 MiB or more: split it".into())
        }
        Ok(_) => Ok(text),
        Err(error) => Err(format!("{error}: check the file and its permissions")),
    };
    (path.display().to_string(), text)
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
