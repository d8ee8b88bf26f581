//! Tests of the screen, on a terminal in memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::draw::draw;
use super::poll::Snapshot;
use super::screen::{Screen, Todo};

fn screen() -> Screen {
    let client = |hash: &str, limit: &str, count: u64, retry: u64| json!({ "limit": limit, "scope": "ip", "hash": hash, "at_least": count, "at_most": count, "retry_after_ms": retry });
    let mut screen = Screen::new("1m".into());
    screen.show(Ok(Snapshot {
        health: json!({
            "healthy": true, "waiting": 3,
            "rules": {
                "in_force": { "number": 7, "author": "ann", "since": "2025-11-21T00:00:00Z" },
                "is_reachable": true, "last_error": null,
            },
            "stores": [{ "name": "redis", "available": false, "figures": { "breakers_open": 1 } }],
        }),
        limited: vec![
            client("aaaa", "minute", 40, 1_500),
            client("bbbb", "day", 50, 7_200_000),
            client("cccc", "minute", 5, 0),
        ],
        busy: vec![client("dddd", "minute", 9_000, 0)],
        of_all: None,
    }));
    screen
}

fn drawn(screen: &Screen) -> String {
    let mut terminal = Terminal::new(TestBackend::new(100, 20)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    terminal.backend().to_string()
}

fn press(screen: &mut Screen, key: char) -> Todo {
    screen.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
}

/// Returns the places of texts on the screen, which must all be there.
fn places<const N: usize>(text: &str, parts: [&str; N]) -> [usize; N] {
    parts.map(|part| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} is missing:\n{text}"))
    })
}

#[test]
fn screen_shows_health_limits_and_clients() {
    let text = drawn(&screen());
    places(
        &text,
        [
            "healthy  3 waiting",
            "rules 7 by ann",
            "source reachable",
            "redis unavailable  breakers_open 1",
        ],
    );
    places(
        &text,
        [
            "minute",
            "9,000",
            "limited clients over 1m, by requests: 3",
            "2 h",
            "1.5 s",
            "q quit",
        ],
    );
}

#[test]
fn lists_of_all_instances_show_their_age() {
    let mut screen = screen();
    let list = json!({ "instances": 12, "age_ms": 61_500 });
    screen.snapshot.of_all = crate::remote::status::instances(&list);
    places(&drawn(&screen), ["3 (of 12 instances, 62 s old)"]);
    assert_eq!(crate::remote::status::instances(&json!({})), None);
}

#[test]
fn keys_sort_scroll_and_switch_lists() {
    let mut screen = screen();
    let [a, b] = places(&drawn(&screen), ["aaaa", "bbbb"]);
    assert!(b < a, "by requests");
    press(&mut screen, 'c');
    let [a, b, c] = places(&drawn(&screen), ["aaaa", "bbbb", "cccc"]);
    assert!(a < b && b < c, "by client");
    press(&mut screen, 'j');
    assert!(!drawn(&screen).contains("aaaa"));
    press(&mut screen, 'b');
    places(&drawn(&screen), ["dddd", "busiest clients"]);
    for _ in 0..9 {
        press(&mut screen, 'j');
    }
    places(&drawn(&screen), ["dddd"]);
}

#[test]
fn paused_screen_stays_as_it_is() {
    let mut screen = screen();
    press(&mut screen, 'p');
    screen.show(Err("gone".into()));
    places(&drawn(&screen), ["PAUSED", "aaaa"]);
    press(&mut screen, 'p');
    screen.show(Err("gone".into()));
    places(&drawn(&screen), ["no answer: gone", "aaaa"]);
}

#[test]
fn keys_quit() {
    assert_eq!(press(&mut screen(), 'q'), Todo::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen().press(interrupt), Todo::Quit);
}

#[test]
fn small_terminal_does_not_panic() {
    for (width, height) in [(1, 1), (10, 3), (40, 6), (300, 100)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &screen())).unwrap();
    }
}
