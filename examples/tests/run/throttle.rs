//! Examples that throttle outgoing requests, and the messages of a websocket.

use std::process::{Command, Stdio};

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tower_quota_dev::RedisServer;

use crate::example::{Example, program};

/// Runs an example to the end, and returns the printed lines.
fn lines(name: &str) -> Vec<String> {
    let output = Command::new(program(name)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines().map(str::to_owned).collect()
}

/// Returns the milliseconds at the end of a line.
fn millis(line: &str) -> u64 {
    let number = line
        .strip_suffix(" ms")
        .and_then(|rest| rest.rsplit(' ').next());
    number
        .unwrap_or_else(|| panic!("no milliseconds in {line:?}"))
        .parse()
        .unwrap()
}

#[test]
fn hyper_client_obeys_api_pushback() {
    let lines = lines("client_hyper");
    for (number, line) in (1..=6).zip(&lines) {
        assert!(
            line.starts_with(&format!("request {number}: 200 after ")),
            "{lines:?}"
        );
    }
    // The client's own limit would have sent all six requests within 100 ms.
    assert!(millis(&lines[5]) >= 1_000, "{lines:?}");
    assert!(
        lines[6]
            .starts_with("urgent request: not sent, the remote asked for a pause: try again in "),
        "{lines:?}"
    );
}

#[test]
fn reqwest_client_obeys_api_pushback() {
    let lines = lines("client_reqwest");
    assert!(
        lines[0].starts_with("request 1: refused by the API after "),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("request 2: hello after ")
            && lines[2].starts_with("request 3: hello after "),
        "{lines:?}"
    );
    assert!(millis(&lines[1]) >= 1_000, "{lines:?}");
}

#[test]
fn tonic_client_distinguishes_refusals() {
    let lines = lines("client_tonic");
    assert_eq!(
        lines[..3],
        ["call 1: Serving", "call 2: Serving", "call 3: Serving"]
    );
    for line in &lines[3..] {
        assert!(
            line.contains("not sent, the remote asked for a pause: try again in "),
            "{lines:?}"
        );
    }
}

#[test]
fn processes_share_one_budget() {
    let server = RedisServer::start();
    let start = |_| {
        let mut command = Command::new(program("shared_budget"));
        command
            .env("REDIS_URL", server.url())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let processes = [0, 1, 2].map(start);
    let sent = processes.map(|process| {
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap();
        last.split(' ')
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap_or_else(|_| panic!("{text}"))
    });
    // On a busy machine a decision may miss the deadline. The message is then counted, but not sent.
    assert!((1..=12).contains(&sent.iter().sum::<u32>()), "{sent:?}");
}

#[test]
fn worker_delays_only_the_busy_tenant() {
    let lines = lines("worker");
    let with = |start: &str| {
        lines
            .iter()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{lines:?}"))
    };
    let waited = millis(with("ann 3 printed after "));
    assert!(waited >= 190, "{lines:?}");
    assert!(millis(with("bob 1 printed after ")) <= waited, "{lines:?}");
    assert!(
        (1..=300).contains(&millis(with("ann 4 goes back to the queue for "))),
        "{lines:?}"
    );
    with("bob 2 can never be printed: 9 pages");
}

#[tokio::test]
async fn websocket_limits_each_user() {
    let example = Example::start("websocket", &[]);
    let connect = async |user: &str| {
        connect_async(format!("ws://{}/chat/{user}", example.address))
            .await
            .unwrap()
            .0
    };
    let (mut one, mut other, mut bob) = (
        connect("ann").await,
        connect("ann").await,
        connect("bob").await,
    );
    // The user already has two connections, so the third is refused.
    let third = connect_async(format!("ws://{}/chat/ann", example.address)).await;
    let refused = third.unwrap_err().to_string();
    assert!(refused.contains("429"), "{refused}");
    for number in 0..5 {
        // Alternate, because the limit counts all connections of the user together.
        let socket = if number % 2 == 0 {
            &mut one
        } else {
            &mut other
        };
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.next().await.unwrap().unwrap(),
            Message::text("ann: hello")
        );
    }
    for socket in [&mut one, &mut other] {
        // Binary messages count too.
        socket.send(Message::binary(vec![0; 10])).await.unwrap();
        let reply = socket.next().await.unwrap().unwrap();
        assert!(
            reply
                .to_text()
                .unwrap()
                .starts_with("slow down: try again in "),
            "{reply}"
        );
    }
    bob.send(Message::text("hello")).await.unwrap();
    assert_eq!(
        bob.next().await.unwrap().unwrap(),
        Message::text("bob: hello")
    );
    // The server disconnects a client that continues.
    for _ in 0..40 {
        if one.send(Message::text("hello")).await.is_err() {
            break;
        }
    }
    while let Some(Ok(message)) = one.next().await {
        if let Message::Close(Some(frame)) = message {
            assert_eq!(frame.code, CloseCode::Policy);
            return;
        }
    }
    panic!("the connection was not closed");
}
