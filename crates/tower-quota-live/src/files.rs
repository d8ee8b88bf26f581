//! Files, off the runtime's threads.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file by a rename, so readers always see a complete file, even after a crash.
pub(crate) async fn replace(path: &Path, text: String) -> io::Result<()> {
    let path = path.to_owned();
    blocking(move || {
        // A symlink stays, and its target is replaced.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let temporary = temporary_path(&path);
        let replaced = write(&temporary, &text, &path).and_then(|()| fs::rename(&temporary, &path));
        replaced.inspect_err(|_| drop(fs::remove_file(&temporary)))
    })
    .await
}

fn write(path: &Path, text: &str, replaced: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    // Only the owner may read a new file.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    if cfg!(unix)
        && let Ok(replaced) = fs::metadata(replaced)
    {
        file.set_permissions(replaced.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:016x}", fastrand::u64(..)));
    path.with_file_name(name)
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
