use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::LONGEST_LINE;

pub(crate) struct LogFile(Box<dyn BufRead>);

const BUFFER_BYTES: usize = 1 << 17;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl LogFile {
    /// Opens a log, or standard input for `-`, and recognizes gzip by the first bytes.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let source: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, source);
        Ok(Self(if plain.fill_buf()?.starts_with(&GZIP_MAGIC) {
            let decoder = MultiGzDecoder::new(plain);
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        } else {
            Box::new(plain)
        }))
    }

    /// Reads the next line into the buffer, and cuts a line longer than `LONGEST_LINE`.
    ///
    /// Returns false at the end of the log.
    pub(crate) fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        let mut bounded = self.0.by_ref().take(LONGEST_LINE);
        let length = bounded.read_until(b'\n', line)?;
        if length as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            self.0.skip_until(b'\n')?;
        }
        Ok(length > 0)
    }
}
