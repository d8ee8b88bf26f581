use core::net::IpAddr;

use super::*;

struct Read {
    micros: u64,
    request: Request<LoggedResponse>,
}

fn read(line: &str) -> Read {
    read_by(&mut LineReader::default(), line)
}

fn read_by(reader: &mut LineReader, line: &str) -> Read {
    let (micros, request) = reader.read(line.as_bytes()).unwrap();
    Read { micros, request }
}

impl Read {
    fn header(&self, name: &str) -> Option<&str> {
        let value = self.request.headers().get(name);
        value.map(|value| value.to_str().unwrap())
    }

    fn address(&self) -> Option<IpAddr> {
        self.request.extensions().get().copied()
    }

    fn response(&self) -> (Option<u16>, Option<u64>) {
        (self.request.body().status, self.request.body().bytes)
    }
}

#[test]
fn common_line_of_the_manual_is_read() {
    let read = read(
        r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
    );
    assert_eq!(
        (read.micros, read.request.method().as_str()),
        (971_211_336_000_000, "GET")
    );
    assert_eq!(
        (read.request.uri().path(), read.response()),
        ("/apache_pb.gif", (Some(200), Some(2326)))
    );
    // The header has the user frank, with an empty password.
    assert_eq!(
        (read.address(), read.header("authorization")),
        (Some([127, 0, 0, 1].into()), Some("Basic ZnJhbms6"))
    );
    assert_eq!(read.request.headers().len(), 1);
}

#[test]
fn combined_line_has_referer_and_agent() {
    let read = read(
        r#"2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "POST /a?b=\"c\" HTTP/1.1" 429 - "-" "curl \x41 \\ 8.0" "secret""#,
    );
    assert_eq!(
        (read.request.uri().to_string().as_str(), read.response()),
        ("/a?b=%22c%22", (Some(429), None))
    );
    assert_eq!(read.header("user-agent"), Some("curl A \\ 8.0"));
    assert_eq!(read.request.headers().len(), 1);
}

#[test]
fn quoted_field_is_header_by_position() {
    let mut reader = LineReader::new(&[header_source("X-Api-Key=3").unwrap()]);
    let line = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/2.0" 200 1 "r" "u" "sk_1""#;
    let read = read_by(&mut reader, line);
    let names = ["referer", "user-agent", "x-api-key"];
    assert_eq!(
        names.map(|name| read.header(name)),
        [Some("r"), Some("u"), Some("sk_1")]
    );
}

#[test]
fn virtual_host_before_address_is_host() {
    let read =
        read(r#"a.example:443 10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 1"#);
    assert_eq!(
        (read.header("host"), read.address()),
        (Some("a.example:443"), Some([10, 0, 0, 1].into()))
    );
}

#[test]
fn target_with_spaces_is_encoded() {
    for (target, path) in [("/a b\\\"é", "/a%20b%22%C3%A9"), ("http://host/a?b", "/a")] {
        let read = read(&format!(
            r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET {target} HTTP/1.1" 200 1"#
        ));
        assert_eq!(read.request.uri().path(), path);
    }
}

#[test]
fn json_of_each_server_is_read() {
    for line in [
        r#"{"time":"2000-10-10T20:55:36Z","remote_addr":"10.0.0.1","method":"GET","path":"/a","host":"h","status":200,"headers":{"x-api-key":"k"}}"#,
        // nginx
        r#"{"msec":"971211336.000","remote_addr":"10.0.0.1","request":"GET /a HTTP/1.1","http_host":"h","status":"200","http_x_api_key":"k","http_referer":"-"}"#,
        // Caddy
        r#"{"ts":971211336.0,"request":{"remote_ip":"10.0.0.1","method":"GET","host":"h","uri":"/a","headers":{"x-api-key":["k"]}},"status":200}"#,
        // Traefik and Envoy
        r#"{"StartUTC":"2000-10-10T20:55:36Z","ClientHost":"10.0.0.1","RequestMethod":"GET","RequestPath":"/a","RequestHost":"h","DownstreamStatus":200,"headers":{"x-api-key":"k"}}"#,
        r#"{"start_time":"2000-10-10T20:55:36.000Z","downstream_remote_address":"10.0.0.1:5000","method":"GET","path":"\/a","authority":"h","response_code":200,"http_x_api_key":"k"}"#,
    ] {
        let read = read(line);
        assert_eq!(read.micros, 971_211_336_000_000, "{line}");
        assert_eq!(
            (read.address(), read.response().0),
            (Some([10, 0, 0, 1].into()), Some(200)),
            "{line}"
        );
        assert_eq!(
            (read.request.method().as_str(), read.request.uri().path()),
            ("GET", "/a"),
            "{line}"
        );
        assert_eq!(
            (read.header("host"), read.header("x-api-key")),
            (Some("h"), Some("k")),
            "{line}"
        );
        assert_eq!(read.request.headers().len(), 2, "{line}");
    }
}

#[test]
fn unreadable_line_says_why() {
    let mut reader = LineReader::default();
    for (line, why) in [
        ("", Unreadable::Form),
        ("nonsense", Unreadable::Form),
        (
            r#"10.0.0.1 - - [now] "GET / HTTP/1.1" 200 1"#,
            Unreadable::Time,
        ),
        (
            r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "-" 400 1"#,
            Unreadable::Request,
        ),
        (
            r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03\x01" 400 1"#,
            Unreadable::Request,
        ),
        (
            r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1\"#,
            Unreadable::Form,
        ),
        (r#"{"time":1}"#, Unreadable::Request),
        (r#"{"path":"/"}"#, Unreadable::Time),
        (r#"{"path":"#, Unreadable::Form),
    ] {
        assert_eq!(reader.read(line.as_bytes()).unwrap_err(), why, "{line}");
    }
    assert_eq!(reader.read(b"\xff\xfe").unwrap_err(), Unreadable::Form);
}

#[test]
fn compressed_log_is_read_like_plain_one() {
    use std::io::Write;

    let folder = tempfile::tempdir().unwrap();
    let text = b"first\nsecond\r\n\nlast";
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    let compressed = encoder.finish().unwrap();
    for (name, bytes) in [("plain", text.as_slice()), ("compressed", &compressed)] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut file = LogFile::open(&path).unwrap();
        let (mut lines, mut line) = (Vec::new(), Vec::new());
        while file.next_line(&mut line).unwrap() {
            lines.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!(lines, ["first\n", "second\r\n", "\n", "last"], "{name}");
    }
}

#[test]
fn endless_line_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let longest = usize::try_from(LONGEST_LINE).unwrap();
    std::fs::write(&path, vec![b'x'; 3 * longest]).unwrap();
    let (mut file, mut line) = (LogFile::open(&path).unwrap(), Vec::new());
    assert!(file.next_line(&mut line).unwrap());
    assert_eq!(line.len(), longest);
    assert!(!file.next_line(&mut line).unwrap());
}
