//! Tests of the store of rules in Consul, with a small server of Consul's key-value API.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use crate::example::{Example, Request, TIMEOUT, get, request};

const TOKEN: &str = "the-token-of-the-tests";

/// The keys of a server with their values, and the index of the last change.
#[derive(Default)]
struct Kept {
    index: u64,
    values: BTreeMap<String, String>,
}

#[derive(Default)]
struct KeyValues {
    kept: Mutex<Kept>,
    changed: Condvar,
}

impl KeyValues {
    /// Serves on a free port until the test ends, and returns the address.
    fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let keys = Arc::new(Self::default());
        keys.kept.lock().unwrap().index = 1;
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keys = Arc::clone(&keys);
                std::thread::spawn(move || keys.answer(stream));
            }
        });
        address
    }

    /// Answers one request, as Consul does.
    fn answer(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut length = 0;
        loop {
            let mut field = String::new();
            reader.read_line(&mut field).ok()?;
            if field.trim().is_empty() {
                break;
            }
            let (name, value) = field.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (method, target) = line.split_once(' ')?;
        let (path, query) = target
            .split(' ')
            .next()?
            .split_once('?')
            .unwrap_or((target, ""));
        let key = path.split(' ').next()?.strip_prefix("/v1/kv/")?;
        let (index, answer) = self.apply(method, key, query, String::from_utf8(body).ok()?);
        let status = if answer.is_some() {
            "200 OK"
        } else {
            "404 Not Found"
        };
        let answer = answer.unwrap_or_default();
        let length = answer.len();
        write!(
            reader.get_mut(),
            "HTTP/1.1 {status}\r\nx-consul-index: {index}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
        )
        .ok()
    }

    fn apply(&self, method: &str, key: &str, query: &str, body: String) -> (u64, Option<String>) {
        let mut kept = self.kept.lock().unwrap();
        let answer = match method {
            "PUT" => {
                assert_eq!(query, "cas=0");
                let is_new = !kept.values.contains_key(key);
                if is_new {
                    kept.values.insert(key.to_owned(), body);
                    kept.index += 1;
                }
                Some(is_new.to_string())
            }
            "DELETE" => {
                kept.index += 1;
                kept.values.remove(key);
                Some("true".to_owned())
            }
            _ if query == "raw" => kept.values.get(key).cloned(),
            _ => {
                let known = query
                    .split('&')
                    .find_map(|part| part.strip_prefix("index="));
                let known: Option<u64> = known.map(|known| known.parse().unwrap());
                let waited = |kept: &mut Kept| Some(kept.index) == known;
                let wait = self.changed.wait_timeout_while(kept, TIMEOUT, waited);
                kept = wait.unwrap().0;
                let keys = kept.values.keys().filter(|known| known.starts_with(key));
                let keys: Vec<String> = keys.map(|key| format!("\"{key}\"")).collect();
                (!keys.is_empty()).then(|| format!("[{}]", keys.join(",")))
            }
        };
        self.changed.notify_all();
        (kept.index, answer)
    }
}

fn start(consul: &str) -> (Example, String) {
    let settings = [
        ("ADMIN_PORT", "0"),
        ("ADMIN_TOKEN", TOKEN),
        ("CONSUL", consul),
    ];
    let example = Example::start("rules_in_consul", &settings);
    let admin = example.line();
    let admin = admin.strip_prefix("admin on http://").unwrap().to_owned();
    (example, admin)
}

fn admin(method: &str, path: &str) -> Request {
    request(method, path).header(&format!("authorization: Bearer {TOKEN}"))
}

fn put(quota: &str, precondition: &str) -> Request {
    admin("PUT", "/v1/rules")
        .header("content-type: application/yaml")
        .header(precondition)
        .body(&format!(
            "limits: [{{ name: minute, quota: {quota}, key: header x-api-key }}]"
        ))
}

fn until_quota(example: &Example, quota: u64) {
    let ann = |_| get("/").header("x-api-key: ann");
    let field = format!("\"minute\";q={quota}");
    example.until(ann, |_, answer| answer.contains(&field));
}

#[test]
fn rules_in_consul_hold_on_all_instances() {
    let consul = KeyValues::serve();
    let ((one, one_admin), (other, other_admin)) = (start(&consul), start(&consul));
    let (status, answer) = put("200/minute", "if-none-match: *").send(&one_admin);
    assert_eq!(status, 200, "{answer}");
    let tag = answer.lines().find_map(|line| line.strip_prefix("etag: "));
    let expected = format!("if-match: {}", tag.unwrap());
    for example in [&one, &other] {
        until_quota(example, 200);
    }
    // Two people change version 1, and the first one wins.
    let (status, answer) = put("300/minute", &expected).send(&other_admin);
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = put("400/minute", &expected).send(&one_admin);
    assert!(
        status == 412 && answer.contains("\"current\":2"),
        "{answer}"
    );
    until_quota(&one, 300);
    let (status, history) = admin("GET", "/v1/rules/history").send(&one_admin);
    assert!(
        status == 200 && history.contains("\"number\":1"),
        "{history}"
    );

    // The store keeps documents only.
    let block = admin("PUT", "/v1/blocks")
        .header("content-type: application/json")
        .body("{\"target\": \"ann\", \"seconds\": 60, \"reason\": \"a test\"}");
    let (status, answer) = block.send(&one_admin);
    assert_eq!(status, 200, "{answer}");
    one.expect(&get("/").header("x-api-key: ann"), 403, &[]);
    other.expect(&get("/").header("x-api-key: ann"), 200, &[]);
    let (_, health) = admin("GET", "/v1/health").send(&one_admin);
    assert!(health.contains("\"blocks_are_shared\":false"), "{health}");
}

#[cfg(target_os = "linux")]
#[test]
fn slow_admin_clients_leave_the_service_alone() {
    let (example, admin_port) = start(&KeyValues::serve());
    example.bounds_slow_clients(&admin_port, &admin("GET", "/v1/health"));
}
