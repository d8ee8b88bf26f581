//! Starts examples, and sends requests to them.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A timeout for the output and the answers of an example, which only a broken test reaches.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the path of an example, which cargo builds before the tests, in a folder next to the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples")
        .join(name)
}

/// A request over HTTP/1.1.
pub(crate) struct Request {
    line: String,
    headers: String,
    body: String,
    source: Ipv4Addr,
    host: Option<String>,
}

pub(crate) fn get(path: &str) -> Request {
    request("GET", path)
}

/// Creates a request without a body.
pub(crate) fn request(method: &str, path: &str) -> Request {
    let line = format!("{method} {path} HTTP/1.1");
    Request {
        line,
        headers: String::new(),
        body: String::new(),
        source: Ipv4Addr::LOCALHOST,
        host: None,
    }
}

pub(crate) fn post(path: &str, body: &str) -> Request {
    request("POST", path).body(body)
}

impl Request {
    /// Adds a header, `name: value`.
    pub(crate) fn header(mut self, header: &str) -> Self {
        write!(self.headers, "{header}\r\n").unwrap();
        self
    }

    /// Adds a body, with its length.
    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self.header(&format!("content-length: {}", body.len()))
    }

    /// Turns the request into a POST with a chunked body.
    pub(crate) fn chunked(mut self, chunks: &str) -> Self {
        self.line = self.line.replace("GET", "POST");
        self.body = chunks.to_owned();
        self.header("transfer-encoding: chunked")
    }

    /// Sets the `Host`, which is the address of the example by default.
    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Sends the request from another local address. Linux accepts every address of 127.0.0.0/8.
    pub(crate) fn from(mut self, source: [u8; 4]) -> Self {
        self.source = source.into();
        self
    }

    /// Sends the request over a new connection, and returns the status and the answer in lower case.
    pub(crate) fn send(&self, address: &str) -> (u16, String) {
        self.begin(address).end()
    }

    /// Sends the request over a new connection, without waiting for the answer.
    pub(crate) fn begin(&self, address: &str) -> Sent {
        let mut stream = connect(self.source, address);
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let Self {
            line,
            headers,
            body,
            ..
        } = self;
        let host = self.host.as_deref().unwrap_or(address);
        let close = if headers.contains("upgrade") {
            ""
        } else {
            "connection: close\r\n"
        };
        write!(stream, "{line}\r\nhost: {host}\r\n{headers}{close}\r\n").unwrap();
        // A server that refuses the head may close the connection before reading the body.
        let _ = stream.write_all(body.as_bytes());
        Sent(stream)
    }
}

/// Connects from an address. Uses tokio, because the standard library cannot bind a client socket.
fn connect(source: Ipv4Addr, address: &str) -> TcpStream {
    if source == Ipv4Addr::LOCALHOST {
        return TcpStream::connect(address).unwrap();
    }
    let connecting = async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((source, 0))).unwrap();
        socket
            .connect(address.parse().unwrap())
            .await
            .unwrap()
            .into_std()
            .unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let stream = runtime.block_on(connecting);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// A request without an answer yet.
pub(crate) struct Sent(TcpStream);

impl Sent {
    /// Sends bytes, and returns whether the server closes the connection instead of waiting for more bytes.
    pub(crate) fn ends_after(mut self, bytes: &[u8], timeout: Duration) -> bool {
        self.0.set_read_timeout(Some(timeout)).unwrap();
        self.0.write_all(bytes).unwrap();
        // An upgraded connection ends only if the server closes the socket.
        match self.0.read_to_end(&mut Vec::new()) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Waits for the answer, and returns the status and the answer in lower case.
    pub(crate) fn end(mut self) -> (u16, String) {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        let status = answer[9..12].parse().unwrap();
        (status, answer.to_lowercase())
    }
}

/// A running example. Dropping the value ends the process.
pub(crate) struct Example {
    process: Child,
    lines: Receiver<String>,
    /// The address of the service.
    pub(crate) address: String,
}

impl Example {
    /// Starts an example on a free port, and waits until the example prints the address.
    pub(crate) fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        let mut process = Command::new(program(name))
            .envs(settings.iter().copied())
            .env("PORT", "0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let mut example = Self {
            process,
            lines,
            address: String::new(),
        };
        let listening = example.line();
        let rest = listening
            .strip_prefix("listening on http://")
            .expect("the first line names the address");
        example.address = rest.split_whitespace().next().unwrap().to_owned();
        example
    }

    /// Returns the number of open files and connections of the process.
    #[cfg(target_os = "linux")]
    pub(crate) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.process.id());
        std::fs::read_dir(folder).unwrap().count()
    }

    /// Asserts that slow clients of an admin port leave the service alone.
    ///
    /// Half a head on each of many connections costs the example 64 file descriptors, for a few seconds. `status` is a request to the
    /// admin port.
    #[cfg(target_os = "linux")]
    pub(crate) fn bounds_slow_clients(&self, admin: &str, status: &Request) {
        let before = self.descriptors();
        let slow: Vec<TcpStream> = (0..200)
            .map(|_| {
                let mut stream = TcpStream::connect(admin).unwrap();
                stream
                    .write_all(b"GET /v1/health HTTP/1.1\r\nhost: a\r\n")
                    .unwrap();
                stream
            })
            .collect();
        self.expect(&get("/").header("x-api-key: ann"), 200, &[]);
        let more = self.descriptors() - before;
        assert!(more <= 64 + 8, "{more} more");
        // The example closes slow connections, so the first one ends.
        let mut first = &slow[0];
        first.set_read_timeout(Some(TIMEOUT)).unwrap();
        let _ = first.read_to_end(&mut Vec::new()).unwrap();
        drop(slow);
        assert_eq!(status.send(admin).0, 200);
    }

    /// Returns the next line that the example prints.
    pub(crate) fn line(&self) -> String {
        self.lines
            .recv_timeout(TIMEOUT)
            .expect("the example prints a line in time")
    }

    /// Returns the next line that begins with `start`.
    pub(crate) fn line_beginning(&self, start: &str) -> String {
        let mut lines = core::iter::repeat_with(|| self.line());
        lines
            .find(|line| line.starts_with(start))
            .expect("the example prints a line with this start")
    }

    /// Returns the id of the example's process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a request, and returns the status and the answer in lower case.
    pub(crate) fn ask(&self, request: &Request) -> (u16, String) {
        request.send(&self.address)
    }

    /// Sends a request, and asserts that the answer has the status and contains every text of `expected`.
    pub(crate) fn expect(&self, request: &Request, status: u16, expected: &[&str]) -> String {
        let (got, answer) = self.ask(request);
        let missing = expected.iter().find(|text| !answer.contains(**text));
        assert!(
            got == status && missing.is_none(),
            "{}: not {status} with {missing:?}: {answer}",
            request.line
        );
        answer
    }

    /// Sends requests without a pause until `is_accepted` accepts an answer, and returns the answer. The number of
    /// requests depends on the machine, so a deadline ends the search instead of a count.
    pub(crate) fn until(
        &self,
        request: impl Fn(usize) -> Request,
        is_accepted: impl Fn(u16, &str) -> bool,
    ) -> String {
        let end = Instant::now() + TIMEOUT;
        for i in 0.. {
            let (status, answer) = self.ask(&request(i));
            if is_accepted(status, &answer) {
                return answer;
            }
            assert!(Instant::now() < end, "an answer is accepted in time");
        }
        unreachable!()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
