use core::time::Duration;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::files::blocking;
use crate::wait::pause;

/// The age from which a file is stable. A program may still write a younger file.
const STABLE_AFTER: Duration = Duration::from_millis(100);
const MOST_READS: usize = 10;

/// Returns whether the last line of a text shows that the text is complete.
pub(super) fn has_end(text: &str) -> bool {
    let mut lines = text.lines().rev().map(str::trim);
    let last = lines.find(|line| !matches!(*line, "" | "}") && !line.starts_with('#'));
    // A merged document is printed as JSON.
    last.is_some_and(|line| line.starts_with("end:") || line.starts_with("\"end\":"))
}

/// Reads a file after it has become stable, and after it has its last line if it must have one.
///
/// A file that keeps changing is finally read unstable, and checked like any other document.
pub(super) async fn settled(path: &Path, max_bytes: u64, must_end: bool) -> io::Result<String> {
    let mut last = read(path, max_bytes).await?;
    for _ in 1..MOST_READS {
        let (text, age) = last;
        let is_cut = must_end && !has_end(&text);
        if age >= STABLE_AFTER && !text.is_empty() && !is_cut {
            return Ok(text);
        }
        let rest = match is_cut {
            true => STABLE_AFTER,
            false => STABLE_AFTER.saturating_sub(age),
        };
        pause(rest.max(Duration::from_millis(10))).await;
        last = read(path, max_bytes).await?;
    }
    match last {
        (text, _) if text.is_empty() => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file is empty",
        )),
        (text, _) => Ok(text),
    }
}

async fn read(path: &Path, max_bytes: u64) -> io::Result<(String, Duration)> {
    let path = path.to_owned();
    blocking(move || {
        let file = File::open(&path)?;
        let text = text(&file, max_bytes)?;
        let modified = file.metadata()?.modified()?;
        // Count a time in the future as now, because it comes from the clock of another machine.
        Ok((text, modified.elapsed().unwrap_or_default()))
    })
    .await
}

/// Reads a text of bounded length.
pub(super) fn text(file: &File, max_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message =
            format!("the file has more than {max_bytes} bytes: raise `max_bytes` if that is meant");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
