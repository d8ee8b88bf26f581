//! `top`: a running service as a text screen.
//!
//! `poll` asks the admin API in a thread of its own, so that keys are answered while the network is slow. `screen` is
//! what is shown and what keys do to it. `draw` draws it. This file connects them to the terminal.

mod draw;
mod poll;
mod screen;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::io::{self, IsTerminal};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::poll::Poller;
use self::screen::{Screen, Todo};
use crate::failure::{Ended, Failure, Found};
use crate::remote::status::{self, TopArguments};

/// The longest time until a key is answered.
const TICK: Duration = Duration::from_millis(100);

/// Shows the screen on a terminal, or else the list once.
pub(crate) fn run(arguments: &TopArguments, is_json: bool) -> Ended {
    let api = arguments.target.instance("top clients")?;
    if is_json || arguments.once || !io::stdout().is_terminal() {
        return status::top(&api, arguments, is_json);
    }
    // A wrong address or token is better said on the terminal as it is.
    let first = poll::snapshot(&api, arguments)?;
    let poller = Poller::start(api, arguments.clone());
    let mut screen = Screen::new(arguments.window.clone());
    screen.show(Ok(first));
    let failed = |error: io::Error| Failure::Usage(error.to_string());
    // It also restores the terminal if this process panics.
    let terminal = ratatui::try_init().map_err(failed)?;
    let ended = watch(terminal, &mut screen, &poller);
    ratatui::restore();
    ended.map_err(failed)?;
    Ok(Found::Nothing)
}

fn watch(mut terminal: DefaultTerminal, screen: &mut Screen, poller: &Poller) -> io::Result<()> {
    loop {
        terminal.draw(|frame| draw::draw(frame, screen))?;
        if event::poll(TICK)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && screen.press(key) == Todo::Quit
        {
            return Ok(());
        }
        while let Some(snapshot) = poller.next() {
            screen.show(snapshot);
        }
    }
}
