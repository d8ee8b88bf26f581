//! The progress of a replay, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::log::LogFile;

/// A bar that shows how much of the log's file has been read. It is on standard error, and only if that is a terminal.
pub(crate) struct Progress(Option<ProgressBar>);

/// The lines between two looks.
const LINES: u64 = 4_096;

impl Progress {
    pub(crate) fn start(file: &LogFile, is_shown: bool) -> Self {
        if !is_shown {
            return Self(None);
        }
        let bar = match file.length() {
            Some(length) => ProgressBar::new(length).with_style(style(
                "{bar:40} {percent:>3} %  {bytes}/{total_bytes}  {msg} lines  {elapsed}, {eta} left",
            )),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {bytes}  {msg} lines  {elapsed}")),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        Self(Some(bar))
    }

    /// Shows the progress, now and then.
    pub(crate) fn follow(&self, file: &LogFile, lines: u64) {
        if let Some(bar) = &self.0
            && lines.is_multiple_of(LINES)
        {
            bar.set_position(file.bytes_read());
            bar.set_message(lines.to_string());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
