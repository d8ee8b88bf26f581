//! Commands whose words are any bytes.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends one command to a server on a loopback port, and returns the strings of its reply: those of an array, or one.
///
/// An error that the server answers is an error here, and so is a reply of another kind.
pub(crate) fn command(port: u16, words: &[&[u8]]) -> io::Result<Vec<Vec<u8>>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    stream.write_all(&request)?;
    let mut reply = BufReader::new(stream);
    let line = line(&mut reply)?;
    match line.split_at_checked(1) {
        Some(("*", count)) => (0..number(count)?).map(|_| bulk(&mut reply)).collect(),
        Some(("+", text)) => Ok(vec![text.as_bytes().to_vec()]),
        _ => Err(io::Error::other(line)),
    }
}

fn bulk(reply: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let length = number(line(reply)?.trim_start_matches('$'))?;
    let mut bytes = vec![0; length + 2];
    reply.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn line(reply: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reply.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(io::Error::other)
}
