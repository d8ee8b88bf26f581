//! An example that runs, and requests to it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// No example takes longer to say something; a test that hangs helps nobody.
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
}

pub(crate) fn get(path: &str) -> Request {
    request("GET", path)
}

/// A request without a body.
pub(crate) fn request(method: &str, path: &str) -> Request {
    Request { line: format!("{method} {path} HTTP/1.1"), headers: String::new(), body: String::new() }
}

pub(crate) fn post(path: &str, body: &str) -> Request {
    let headers = format!("content-length: {}\r\n", body.len());
    Request { line: format!("POST {path} HTTP/1.1"), headers, body: body.to_owned() }
}

impl Request {
    /// With a header more, `name: value`.
    pub(crate) fn header(mut self, header: &str) -> Self {
        write!(self.headers, "{header}\r\n").unwrap();
        self
    }

    /// Sends it over a connection of its own; the status and the whole answer in lower case.
    pub(crate) fn send(&self, address: &str) -> (u16, String) {
        self.begin(address).end()
    }

    /// Sends it over a connection of its own.
    pub(crate) fn begin(&self, address: &str) -> Sent {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let Self { line, headers, body } = self;
        write!(stream, "{line}\r\nhost: {address}\r\n{headers}connection: close\r\n\r\n{body}").unwrap();
        Sent(stream)
    }
}

/// A request that was sent.
pub(crate) struct Sent(TcpStream);

impl Sent {
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
        let mut process = Command::new(program(name))
            .env("PORT", "0")
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
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
    pub(crate) fn expect(&self, request: &Request, status: u16, told: &[&str]) -> String {
        let (got, answer) = self.ask(request);
        let missing = told.iter().find(|text| !answer.contains(**text));
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
