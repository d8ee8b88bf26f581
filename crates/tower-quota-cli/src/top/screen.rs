//! The state of the screen, and what keys do to it.

use core::cmp::Reverse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::poll::Snapshot;
use crate::remote::status::name;

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) snapshot: Snapshot,
    /// The reason why the last question was not answered.
    pub(super) error: Option<String>,
    pub(super) order: Order,
    pub(super) is_paused: bool,
    /// True if all busy clients are listed, and not the limited ones.
    pub(super) shows_busy: bool,
    /// The first client that is shown.
    pub(super) first: usize,
    pub(super) window: String,
}

/// The order of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Requests,
    Wait,
    Limit,
    Client,
}

/// The next step after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Todo {
    Continue,
    Quit,
}

/// The counts of a limit over the listed clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LimitRow {
    pub(super) name: String,
    pub(super) limited_clients: usize,
    pub(super) refused: u64,
    pub(super) requests: u64,
}

impl Screen {
    pub(super) fn new(window: String) -> Self {
        let snapshot = Snapshot::default();
        Self {
            snapshot,
            error: None,
            order: Order::Requests,
            is_paused: false,
            shows_busy: false,
            first: 0,
            window,
        }
    }

    /// Takes a snapshot, unless the screen is paused.
    pub(super) fn show(&mut self, snapshot: Result<Snapshot, String>) {
        if self.is_paused {
            return;
        }
        match snapshot {
            Ok(snapshot) => (self.snapshot, self.error) = (snapshot, None),
            Err(error) => self.error = Some(error),
        }
        self.first = self.first.min(self.list().len().saturating_sub(1));
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) -> Todo {
        let is_interrupt =
            key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Todo::Quit,
            _ if is_interrupt => return Todo::Quit,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('b') => (self.shows_busy, self.first) = (!self.shows_busy, 0),
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('r') => self.order = Order::Requests,
            KeyCode::Char('w') => self.order = Order::Wait,
            KeyCode::Char('l') => self.order = Order::Limit,
            KeyCode::Char('c') => self.order = Order::Client,
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.scroll(10),
            KeyCode::PageUp => self.first = self.first.saturating_sub(10),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        Todo::Continue
    }

    fn scroll(&mut self, by: usize) {
        self.first = (self.first + by).min(self.list().len().saturating_sub(1));
    }

    fn list(&self) -> &[Value] {
        if self.shows_busy {
            &self.snapshot.busy
        } else {
            &self.snapshot.limited
        }
    }

    /// Returns the clients in their order.
    pub(super) fn clients(&self) -> Vec<&Value> {
        let mut clients: Vec<&Value> = self.list().iter().collect();
        let number = |client: &Value, field: &str| client[field].as_u64().unwrap_or(0);
        let limit = |client: &Value| client["limit"].as_str().unwrap_or_default().to_owned();
        // It is stable: those that are alike keep the order of the service, by requests.
        match self.order {
            Order::Requests => clients.sort_by_key(|client| Reverse(number(client, "at_least"))),
            Order::Wait => clients.sort_by_key(|client| Reverse(number(client, "retry_after_ms"))),
            Order::Limit => clients.sort_by_key(|client| limit(client)),
            Order::Client => clients.sort_by_key(|client| name(client)),
        }
        clients
    }

    /// Returns the limits of the listed clients, by refusals.
    pub(super) fn limits(&self) -> Vec<LimitRow> {
        let mut rows: Vec<LimitRow> = Vec::new();
        let mut add = |client: &Value, is_limited: bool| {
            let limit = client["limit"].as_str().unwrap_or_default();
            let at = rows
                .iter()
                .position(|row| row.name == limit)
                .unwrap_or_else(|| {
                    rows.push(LimitRow {
                        name: limit.to_owned(),
                        limited_clients: 0,
                        refused: 0,
                        requests: 0,
                    });
                    rows.len() - 1
                });
            let count = client["at_least"].as_u64().unwrap_or(0);
            if is_limited {
                rows[at].limited_clients += 1;
                rows[at].refused += count;
            } else {
                rows[at].requests += count;
            }
        };
        self.snapshot
            .limited
            .iter()
            .for_each(|client| add(client, true));
        self.snapshot
            .busy
            .iter()
            .for_each(|client| add(client, false));
        rows.sort_by_key(|row| (Reverse(row.refused), Reverse(row.requests)));
        rows
    }
}

impl Order {
    const fn next(self) -> Self {
        match self {
            Self::Requests => Self::Wait,
            Self::Wait => Self::Limit,
            Self::Limit => Self::Client,
            Self::Client => Self::Requests,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Wait => "wait",
            Self::Limit => "limit",
            Self::Client => "client",
        }
    }
}
