//! The figures of a suite, shaped as the tables that a page shows, and the conditions of the run.

use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::path::Path;
use std::process::Command;
use std::thread;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tower_quota_core::{Clock, MonotonicClock};

use crate::Outcome;

/// The figures of a suite.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// `None` before the report is published.
    pub(crate) conditions: Option<Conditions>,
    pub(crate) tables: Vec<Table>,
    /// Figures over time, at equal intervals.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub(crate) timelines: IndexMap<String, Vec<f64>>,
}

/// A table. With a peer, the columns are contenders, and a ratio to the peer comes first.
#[derive(Serialize, Deserialize)]
pub(crate) struct Table {
    head: String,
    /// The column that the first column is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    columns: Vec<String>,
    /// The rounds of each figure, and 1 for figures that were measured once.
    rounds: usize,
    rows: Vec<(String, Vec<Option<Cell>>)>,
}

/// A figure that was measured once or is exact, or the best of rounds and the end of its spread.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Once(f64),
    Rounds { best: f64, to: f64 },
}

impl Cell {
    /// Returns the lowest figure. Its spread ends at the third quartile, or at the worst round of less than twenty.
    pub(crate) fn lowest(rounds: &[f64]) -> Option<Self> {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let to = if last < 19 { last } else { last * 3 / 4 };
        Some(Self::Rounds {
            best: sorted[0],
            to: sorted[to],
        })
    }

    /// Returns the highest figure, with the spread of `lowest` below it.
    pub(crate) fn highest(rounds: &[f64]) -> Option<Self> {
        let negative: Vec<f64> = rounds.iter().map(|figure| -figure).collect();
        let Self::Rounds { best, to } = Self::lowest(&negative)? else {
            return None;
        };
        Some(Self::Rounds {
            best: -best,
            to: -to,
        })
    }

    pub(crate) const fn best(self) -> f64 {
        match self {
            Self::Once(figure) | Self::Rounds { best: figure, .. } => figure,
        }
    }

    /// Returns what a contender adds to the bare cost.
    pub(crate) fn above(self, bare: Self) -> Self {
        match (self, bare) {
            (
                Self::Rounds { best, to },
                Self::Rounds {
                    best: least,
                    to: most,
                },
            ) => Self::Rounds {
                best: best - least,
                to: to - most,
            },
            _ => Self::Once(self.best() - bare.best()),
        }
    }

    fn is_wide(self) -> bool {
        match self {
            Self::Once(_) => false,
            Self::Rounds { best, to } => best.max(to) >= 2.0 * best.min(to),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Once(figure) if figure.fract() == 0.0 => grouped(&format!("{figure:.0}")),
            Self::Once(figure) => two_digits(figure),
            Self::Rounds { best, to } => {
                let mark = if self.is_wide() { " †" } else { "" };
                match (two_digits(best), two_digits(to)) {
                    (best, to) if best == to => best,
                    (best, to) => format!("{best} ({to}){mark}"),
                }
            }
        }
    }
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Self {
        Self::Once(figure)
    }
}

/// Writes two significant digits.
pub(crate) fn two_digits(figure: f64) -> String {
    if figure == 0.0 {
        return "0".to_owned();
    }
    let place = |figure: f64| figure.abs().log10().floor() as i32 - 1;
    let unit = 10_f64.powi(place(figure));
    let rounded = (figure / unit).round() * unit;
    let decimals = (-place(rounded)).max(0) as usize;
    grouped(&format!("{rounded:.decimals$}"))
}

/// Adds commas between thousands.
fn grouped(number: &str) -> String {
    let (whole, part) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if text.ends_with(|last: char| last.is_ascii_digit()) && (whole.len() - position) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + part
}

impl Table {
    pub(crate) fn new(head: &str, columns: &[&str], rounds: usize) -> Self {
        Self {
            head: head.to_owned(),
            peer: None,
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rounds,
            rows: Vec::new(),
        }
    }

    /// Compares the first column with this one.
    pub(crate) fn next_to(mut self, peer: &str) -> Self {
        self.peer = Some(peer.to_owned());
        self
    }

    /// Adds a row, and says so. Missing cells are empty.
    pub(crate) fn row(
        &mut self,
        name: impl Into<String>,
        cells: impl IntoIterator<Item = Option<Cell>>,
    ) {
        let cells = cells.into_iter().chain(iter::repeat(None));
        let row = (name.into(), cells.take(self.columns.len()).collect());
        eprintln!("{}", self.line(&row));
        self.rows.push(row);
    }

    /// Returns the figure of a row in a column.
    pub(crate) fn figure(&self, row: &str, column: &str) -> Option<f64> {
        let (_, cells) = self.rows.iter().find(|(name, _)| name == row)?;
        let column = self.columns.iter().position(|name| name == column)?;
        Some((*cells.get(column)?)?.best())
    }

    /// Returns the ratio of a row to the peer, or of the first of two rows, as in `one / two`, to the second.
    pub(crate) fn ratio_of(&self, row: &str) -> Option<f64> {
        if let Some((one, two)) = row.split_once(" / ") {
            let ours = self.columns.first()?;
            return Some(self.figure(one, ours)? / self.figure(two, ours)?);
        }
        let (_, cells) = self.rows.iter().find(|(name, _)| name == row)?;
        self.ratio(cells)
    }

    /// Returns how many times better the first column is than the peer. Costs should be low, and rates high.
    fn ratio(&self, cells: &[Option<Cell>]) -> Option<f64> {
        let peer = self
            .columns
            .iter()
            .position(|name| Some(name) == self.peer.as_ref())?;
        let (ours, theirs) = (cells[0]?, (*cells.get(peer)?)?);
        let is_rate = matches!(ours, Cell::Rounds { best, to } if best > to);
        let ratio = ours.best() / theirs.best();
        Some(if is_rate { ratio } else { 1.0 / ratio })
    }

    fn line(&self, (name, cells): &(String, Vec<Option<Cell>>)) -> String {
        let mut line = format!("| {name} |");
        if self.peer.is_some() {
            let ratio = self.ratio(cells).map(two_digits).unwrap_or_default();
            line += &format!(" {ratio} |");
        }
        for cell in cells {
            let text = cell.map(Cell::text).unwrap_or_default();
            line += &format!(" {text} |");
        }
        line
    }

    /// Writes the table, and below it how its figures were measured.
    pub(crate) fn markdown(&self) -> String {
        let ratio = self.peer.iter().map(|peer| format!("ratio to {peer}"));
        let heads: Vec<String> = ratio.chain(self.columns.iter().cloned()).collect();
        let mut text = format!("| {} | {} |\n|---|", self.head, heads.join(" | "));
        text += &"---:|".repeat(heads.len());
        for row in &self.rows {
            text += &format!("\n{}", self.line(row));
        }
        text += "\n\n";
        match self.rounds {
            0 | 1 => text += "Measured once.",
            rounds => {
                let end = if rounds < 20 {
                    "the worst round"
                } else {
                    "the third quartile"
                };
                text += &format!("The best of {rounds} rounds in turns ({end}).");
            }
        }
        if self.peer.is_some() {
            text += " A ratio above 1 is better for tower-quota.";
        }
        let mut cells = self.rows.iter().flat_map(|(_, cells)| cells).flatten();
        if cells.any(|cell| cell.is_wide()) {
            text += " † marks a spread of a factor of two or more.";
        }
        text + "\n"
    }
}

impl Report {
    pub(crate) fn of(tables: impl Into<Vec<Table>>) -> Self {
        Self {
            tables: tables.into(),
            ..Self::default()
        }
    }

    pub(crate) fn read(file: &Path) -> Outcome<Self> {
        let text =
            fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// Returns the table with this head.
    pub(crate) fn table(&self, head: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.head == head)
    }

    /// Prints the tables. Writes them to `json` too, with the conditions.
    pub(crate) fn publish(&mut self, quick: bool, load: f64, json: Option<&Path>) -> Outcome {
        for table in &self.tables {
            println!("\n{}", table.markdown());
        }
        if let Some(file) = json {
            self.conditions = Some(Conditions::present(quick, load));
            fs::write(file, serde_json::to_string_pretty(self)? + "\n")?;
        }
        Ok(())
    }
}

/// The machine, the tree and the peers of a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Conditions {
    cpu: String,
    cores: usize,
    kernel: String,
    rustc: String,
    commit: String,
    date: String,
    /// The mean number of processes that wanted to run in the minute before the suite, and in its last minute.
    load: Vec<f64>,
    peers: BTreeMap<String, String>,
    pub(crate) quick: bool,
}

const PEERS: [&str; 9] = [
    "governor",
    "limitador",
    "quota",
    "redis",
    "tower",
    "tower-acc",
    "tower-resilience-adaptive",
    "tower_governor",
    "trypema",
];

impl Conditions {
    /// Returns the conditions of this process, with the load before it began.
    pub(crate) fn present(quick: bool, before: f64) -> Self {
        let micros = i64::try_from(MonotonicClock::new().now().as_micros()).unwrap_or_default();
        let day = Timestamp::from_microsecond(micros).map(|now| now.strftime("%F").to_string());
        let mut peers = versions(&PEERS);
        let server = printed("redis-server", &["--version"]);
        if let Some(version) = server.split(' ').find_map(|word| word.strip_prefix("v=")) {
            peers.insert("redis-server".to_owned(), version.to_owned());
        }
        Self {
            cpu: processor(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            kernel: printed("uname", &["-sr"]),
            rustc: printed("rustc", &["--version"]),
            commit: printed("git", &["describe", "--always", "--dirty", "--abbrev=8"]),
            date: day.unwrap_or_default(),
            load: vec![before, load()],
            peers,
            quick,
        }
    }

    /// Returns the machine, the compiler, the tree, the day and the load in a line.
    pub(crate) fn line(&self) -> String {
        // The version is enough of "rustc 1.95.0 (59807616e 2026-04-14)".
        let compiler = self.rustc.split(" (").next().unwrap_or_default();
        let load: Vec<String> = self.load.iter().map(|load| format!("{load:.1}")).collect();
        format!(
            "{}, {} cores, {}, {compiler}, commit {}, {}, load {}",
            self.cpu,
            self.cores,
            self.kernel,
            self.commit,
            self.date,
            load.join(" to ")
        )
    }

    /// Returns the versions of the peers in a line.
    pub(crate) fn peers(&self) -> String {
        let peers = self
            .peers
            .iter()
            .map(|(name, version)| format!("{name} {version}"));
        peers.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the mean number of processes that wanted to run in the last minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or_default()
}

/// Returns the first line that a program prints, or an empty text.
fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split_once(": "));
    let name = name.map_or("unknown processor", |(_, name)| name.trim());
    if text.contains(" hypervisor") {
        format!("{name} (virtual machine)")
    } else {
        name.to_owned()
    }
}

/// Returns the locked versions of these crates.
fn versions(crates: &[&str]) -> BTreeMap<String, String> {
    let lock = include_str!("../../Cargo.lock");
    let version = |name: &&str| {
        let line = format!("\nname = \"{name}\"\nversion = \"");
        // A peer may depend on an older version, which comes first.
        let version = lock.rsplit_once(&line)?.1.split('"').next()?;
        Some(((*name).to_owned(), version.to_owned()))
    };
    crates.iter().filter_map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table, two_digits};

    #[test]
    fn figures_have_two_digits() {
        let figures = [0.0, 0.008_54, 0.996, 1.0, 12.34, 99.96, 147_332.0, -2.34];
        let texts = ["0", "0.0085", "1.0", "1.0", "12", "100", "150,000", "-2.3"];
        assert_eq!(figures.map(two_digits), texts);
        assert_eq!(Cell::Once(5_000_000.0).text(), "5,000,000");
    }

    #[test]
    fn table_shows_ratio_spread_and_gap() {
        let mut costs =
            Table::new("ns", &["tower-quota", "governor", "quota"], 3).next_to("governor");
        let (ours, theirs) = (
            Cell::lowest(&[62.0, 60.0, 71.0]),
            Cell::lowest(&[54.0, 120.0, 66.0]),
        );
        costs.row("hot", [ours, theirs, None]);
        let text = costs.markdown();
        assert!(
            text.contains("\n| hot | 0.90 | 60 (71) | 54 (120) † |  |\n"),
            "{text}"
        );
        assert!(
            text.contains("The best of 3 rounds in turns (the worst round)."),
            "{text}"
        );
        let mut rates = Table::new("checks/s", &["tower-quota", "governor"], 3).next_to("governor");
        rates.row(
            "hot",
            [Cell::highest(&[9.0, 8.0]), Cell::highest(&[12.0, 10.0])],
        );
        assert!(
            rates
                .markdown()
                .contains("\n| hot | 0.75 | 9.0 (8.0) | 12 (10) |\n")
        );
    }
}
