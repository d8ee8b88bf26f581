//! A minimal client of the Redis protocol, for servers on loopback ports.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Sends inline commands and returns all bytes until the server closes the connection.
///
/// With `is_half_closed` the client ends its side of the connection after the commands.
pub(crate) fn inline(port: u16, commands: &str, is_half_closed: bool) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(commands.as_bytes())?;
    if is_half_closed {
        stream.shutdown(Shutdown::Write)?;
    }
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

/// Sends one command of any bytes, and returns the strings of its reply: those of an array, or one.
///
/// An error reply is an error here, and so is a reply of another kind.
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
