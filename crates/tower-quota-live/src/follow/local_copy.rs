//! The local copy of the last good document, for a restart while the store is unavailable.

use std::io;
use std::path::Path;

use crate::files;
use crate::version::Version;

/// Writes the copy by a rename.
pub(super) async fn write(path: &Path, version: &Version) -> io::Result<()> {
    files::replace(path, serde_json::to_string(version)?).await
}

/// Reads the copy.
pub(super) async fn read(path: &Path) -> io::Result<Version> {
    let path = path.to_owned();
    files::blocking(move || Ok(serde_json::from_slice(&std::fs::read(path)?)?)).await
}
