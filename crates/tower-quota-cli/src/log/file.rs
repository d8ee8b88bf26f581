//! A log as a file: plain or compressed, read line by line.

use core::ops::ControlFlow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::LONGEST_LINE;

/// An opened log.
pub(crate) struct LogFile {
    lines: Box<dyn BufRead>,
    bytes_read: Arc<AtomicU64>,
    length: Option<u64>,
}

/// Counts the bytes that are read from the file itself, for the progress.
struct Counted<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

const BUFFER_BYTES: usize = 1 << 17;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl LogFile {
    /// Opens a log, or standard input for `-`. Its first bytes show whether it is compressed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::of(io::stdin(), None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Self::of(file, metadata.is_file().then_some(metadata.len()))
    }

    fn of(source: impl Read + 'static, length: Option<u64>) -> io::Result<Self> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            inner: source,
            bytes_read: Arc::clone(&bytes_read),
        };
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, counted);
        let lines: Box<dyn BufRead> = if plain.fill_buf()?.starts_with(&GZIP_MAGIC) {
            Box::new(BufReader::with_capacity(
                BUFFER_BYTES,
                MultiGzDecoder::new(plain),
            ))
        } else {
            Box::new(plain)
        };
        Ok(Self {
            lines,
            bytes_read,
            length,
        })
    }

    /// Returns the length of the file in bytes, if it has one.
    pub(crate) const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns the number of bytes that have been read from the file.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Reads the next line into the buffer, without its end; longer ones than allowed only up to there.
    ///
    /// Returns `Break` at the end of the log.
    pub(crate) fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<ControlFlow<()>> {
        line.clear();
        let mut has_any = false;
        loop {
            let chunk = match self.lines.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                return Ok(if has_any {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                });
            }
            has_any = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = (LONGEST_LINE + 1).saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.lines.consume(used);
            if end.is_some() {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
