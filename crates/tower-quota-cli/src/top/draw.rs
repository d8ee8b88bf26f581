//! Draws the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Table};
use serde_json::Value;

use super::screen::Screen;
use crate::output::grouped;
use crate::remote::status::{count, name};
use crate::remote::text::millis;

const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the state of a service: its health, its limits, its clients, and the keys.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let limits = screen.limits();
    let stores = screen.snapshot.health["stores"]
        .as_array()
        .map_or(0, Vec::len);
    let status_height = u16::try_from(3 + stores).unwrap_or(8).min(8);
    let limits_height = u16::try_from(limits.len() + 3).unwrap_or(8).min(8);
    let parts = [
        Constraint::Length(status_height),
        Constraint::Length(limits_height),
        Constraint::Min(3),
        Constraint::Length(1),
    ];
    let [status, limits_area, clients, keys] = Layout::vertical(parts).areas(frame.area());
    draw_status(frame, status, screen);
    let rows = limits.iter().map(|limit| {
        let cells = [
            grouped(limit.refused),
            grouped(limit.limited_clients as u64),
            grouped(limit.requests),
        ];
        Row::new(core::iter::once(limit.name.clone()).chain(cells))
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(14),
        Constraint::Length(14),
        Constraint::Length(14),
    ];
    let head = Row::new(["limit", "refused", "clients limited", "requests"]).style(HEAD);
    let title = format!(" limits, listed clients over {} ", screen.window);
    frame.render_widget(
        Table::new(rows, widths)
            .header(head)
            .block(Block::bordered().title(title)),
        limits_area,
    );
    draw_clients(frame, clients, screen);
    let help = " q quit  p pause  s sort  r requests  w wait  l limit  c client  b busy/limited  arrows scroll";
    frame.render_widget(
        Paragraph::new(help).style(Style::new().add_modifier(Modifier::REVERSED)),
        keys,
    );
}

fn draw_status(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let health = &screen.snapshot.health;
    let rules = &health["rules"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut first = match (&screen.error, health["healthy"] == true) {
        (Some(error), _) => vec![format!("no answer: {error}").fg(Color::Red)],
        (None, true) => vec!["healthy".fg(Color::Green)],
        (None, false) => vec!["NOT HEALTHY".fg(Color::Red).bold()],
    };
    first.push(Span::raw(format!("  {} waiting", health["waiting"])));
    if screen.is_paused {
        first.push("  PAUSED".bold());
    }
    let version = match rules["in_force"]["number"].as_u64() {
        Some(number) => format!(
            "rules {number} by {} since {}",
            text(&rules["in_force"]["author"]),
            text(&rules["in_force"]["since"])
        ),
        None => "no rules yet".into(),
    };
    let source = if rules["is_reachable"] == true {
        "source reachable"
    } else {
        "source not reachable"
    };
    let error = rules["last_error"]
        .as_str()
        .map_or(String::new(), |error| format!("  {error}"));
    let mut lines = vec![
        Line::from(first),
        Line::from(format!("{version}  {source}{error}")),
    ];
    for store in health["stores"].as_array().into_iter().flatten() {
        let state = if store["available"] == true {
            "available".fg(Color::Green)
        } else {
            "unavailable".fg(Color::Red)
        };
        let figures = store["figures"].as_object().into_iter().flatten();
        let figures: Vec<String> = figures
            .map(|(name, figure)| format!("{name} {figure}"))
            .collect();
        lines.push(Line::from(vec![
            Span::raw(format!("{} ", text(&store["name"]))),
            state,
            Span::raw(format!("  {}", figures.join("  "))),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let clients = screen.clients();
    let rows = clients.iter().skip(screen.first).map(|client| {
        let text = |field: &str| client[field].as_str().unwrap_or_default().to_owned();
        let retry = client["retry_after_ms"].as_u64().unwrap_or(0);
        let row = Row::new([
            name(client),
            text("scope"),
            text("limit"),
            count(client),
            millis(retry),
        ]);
        if retry > 0 {
            row.fg(Color::Yellow)
        } else {
            row
        }
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(16),
        Constraint::Length(12),
    ];
    let head = Row::new(["client", "counted by", "limit", "requests", "limited for"]).style(HEAD);
    let kind = if screen.shows_busy {
        "busiest"
    } else {
        "limited"
    };
    let of_all = screen
        .snapshot
        .of_all
        .as_ref()
        .map(|of_all| format!(" ({of_all})"))
        .unwrap_or_default();
    let title = format!(
        " {kind} clients over {}, by {}: {}{of_all} ",
        screen.window,
        screen.order.name(),
        clients.len()
    );
    frame.render_widget(
        Table::new(rows, widths)
            .header(head)
            .block(Block::bordered().title(title)),
        area,
    );
}
