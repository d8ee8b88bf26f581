//! A minimal client of the Redis protocol, for servers on loopback ports.

use std::io::{self, Read, Write};
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
