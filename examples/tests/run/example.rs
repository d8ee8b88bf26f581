//! An example that runs, and requests to it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// No example takes longer to say something; a test that hangs says nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Cargo builds a package's examples before its tests, next to them.
pub(crate) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
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

/// A request without a body.
pub(crate) fn request(method: &str, path: &str) -> Request {
    let line = format!("{method} {path} HTTP/1.1");
    Request { line, headers: String::new(), body: String::new(), source: Ipv4Addr::LOCALHOST, host: None }
}

pub(crate) fn post(path: &str, body: &str) -> Request {
    let mut post = request("POST", path).header(&format!("content-length: {}", body.len()));
    post.body = body.to_owned();
    post
}

impl Request {
    /// With a header more, `name: value`.
    pub(crate) fn header(mut self, header: &str) -> Self {
        write!(self.headers, "{header}\r\n").unwrap();
        self
    }

    /// As a POST whose body is sent in these chunks.
    pub(crate) fn chunked(mut self, chunks: &str) -> Self {
        self.line = self.line.replace("GET", "POST");
        self.body = chunks.to_owned();
        self.header("transfer-encoding: chunked")
    }

    /// By another name than the address that it is sent to.
    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Sends it from another address of this machine; Linux has all of 127.0.0.0/8.
    pub(crate) fn from(mut self, source: [u8; 4]) -> Self {
        self.source = source.into();
        self
    }

    /// Sends it over a connection of its own; the status and the whole answer in lower case.
    pub(crate) fn send(&self, address: &str) -> (u16, String) {
        self.begin(address).end()
    }

    /// Sends it over a connection of its own.
    pub(crate) fn begin(&self, address: &str) -> Sent {
        let mut stream = connect(self.source, address);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let Self { line, headers, body, .. } = self;
        let host = self.host.as_deref().unwrap_or(address);
        let close = if headers.contains("upgrade") { "" } else { "connection: close\r\n" };
        write!(stream, "{line}\r\nhost: {host}\r\n{headers}{close}\r\n").unwrap();
        // A server that refuses the head may close before it has read the body.
        let _ = stream.write_all(body.as_bytes());
        Sent(stream)
    }
}

/// Connects from an address. The standard library chooses it itself, so tokio does this.
fn connect(source: Ipv4Addr, address: &str) -> TcpStream {
    if source == Ipv4Addr::LOCALHOST {
        return TcpStream::connect(address).unwrap();
    }
    let connecting = async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((source, 0))).unwrap();
        socket.connect(address.parse().unwrap()).await.unwrap().into_std().unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(connecting);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// A request that was sent.
pub(crate) struct Sent(TcpStream);

impl Sent {
    /// Returns whether the server closes the connection after these bytes, rather than wait for more.
    pub(crate) fn ends_after(mut self, bytes: &[u8], patience: Duration) -> bool {
        self.0.set_read_timeout(Some(patience)).unwrap();
        self.0.write_all(bytes).unwrap();
        // An upgraded connection has no end of its own but this.
        match self.0.read_to_end(&mut Vec::new()) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Waits for the answer: the status, and all of it in lower case.
    pub(crate) fn end(mut self) -> (u16, String) {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        let status = answer[9..12].parse().unwrap();
        (status, answer.to_lowercase())
    }
}

/// An example that runs, until it is dropped.
pub(crate) struct Example {
    process: Child,
    lines: Receiver<String>,
    /// Where it listens.
    pub(crate) address: String,
}

impl Example {
    /// Starts an example on a free port and waits until it says where it listens.
    pub(crate) fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::run(&program(name), settings)
    }

    /// Starts this program, which is an example.
    pub(crate) fn run(program: &Path, settings: &[(&str, &str)]) -> Self {
        let mut process = Command::new(program)
            .env("PORT", "0")
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut example = Self { process, lines, address: String::new() };
        let listening = example.line();
        let rest = listening.strip_prefix("listening on http://").expect("the first line says where it listens");
        example.address = rest.split_whitespace().next().unwrap().to_owned();
        example
    }

    /// The next line that it prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the example goes on talking")
    }

    /// The next line that it prints which begins like this.
    pub(crate) fn line_beginning(&self, start: &str) -> String {
        let mut lines = core::iter::repeat_with(|| self.line());
        lines.find(|line| line.starts_with(start)).expect("such a line in the end")
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks; the status and the whole answer in lower case.
    pub(crate) fn ask(&self, request: &Request) -> (u16, String) {
        request.send(&self.address)
    }

    /// Asks, and the answer must have this status and contain all of these.
    pub(crate) fn expect(&self, request: &Request, status: u16, texts: &[&str]) -> String {
        let (got, answer) = self.ask(request);
        let missing = texts.iter().find(|text| !answer.contains(**text));
        assert!(got == status && missing.is_none(), "{}: not {status} with {missing:?}: {answer}", request.line);
        answer
    }

    /// Asks without a pause until an answer is as it should be: even a slow machine is faster than the quotas.
    pub(crate) fn until(&self, request: impl Fn(usize) -> Request, met: impl Fn(u16, &str) -> bool) -> String {
        let mut answers = (0..1_000).map(|i| self.ask(&request(i)));
        let (_, answer) = answers.find(|(status, answer)| met(*status, answer)).expect("such an answer in the end");
        answer
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
