//! Reads and writes files, off the runtime's threads.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Replaces a file by a rename, so readers always see a complete file, even after a crash.
///
/// Only the owner may read a new file.
pub(crate) async fn replace(path: &Path, text: String) -> io::Result<()> {
    let path = path.to_owned();
    blocking(move || {
        // Replace the target of a symlink, and keep the symlink.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        if cfg!(unix)
            && let Ok(replaced) = fs::metadata(&path)
        {
            file.as_file().set_permissions(replaced.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        Ok(())
    })
    .await
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
