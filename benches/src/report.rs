//! The figures of a suite: printed as a table and ratios, and kept as JSON with the conditions of the run.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tower_quota_core::{Clock, MonotonicClock};

use crate::targets::target;

/// The figures of a suite.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// `None` before the report is published.
    conditions: Option<Conditions>,
    pub(crate) rows: Vec<Row>,
    /// Figures over time, at equal intervals.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub(crate) timelines: IndexMap<String, Vec<f64>>,
    pub(crate) ratios: BTreeMap<String, f64>,
}

/// The figures of one contender in one case.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) contender: String,
    pub(crate) figures: IndexMap<String, Figure>,
}

/// A figure, measured once or in rounds.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Once(f64),
    Rounds { median: f64, min: f64, max: f64 },
}

impl Figure {
    /// Returns the median of rounds, with the lowest and the highest.
    pub(crate) fn of(rounds: &[f64]) -> Self {
        Self::Rounds {
            median: median(rounds),
            min: rounds.iter().copied().fold(f64::INFINITY, f64::min),
            max: rounds.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Returns the figure, or the median of the rounds.
    pub(crate) const fn median(self) -> f64 {
        match self {
            Self::Once(figure) | Self::Rounds { median: figure, .. } => figure,
        }
    }
}

impl From<f64> for Figure {
    fn from(figure: f64) -> Self {
        Self::Once(figure)
    }
}

impl Report {
    /// Adds the figures of one contender in one case.
    pub(crate) fn row<F: Into<Figure>>(
        &mut self,
        case: &str,
        contender: &str,
        figures: impl IntoIterator<Item = (&'static str, F)>,
    ) {
        let figures = figures
            .into_iter()
            .map(|(name, figure)| (name.to_owned(), figure.into()))
            .collect();
        self.rows.push(Row {
            case: case.to_owned(),
            contender: contender.to_owned(),
            figures,
        });
    }

    /// Adds the ratio of tower-quota and a peer in one case. Above 1 is better for tower-quota.
    pub(crate) fn ratio(&mut self, case: impl Into<String>, value: f64) {
        self.ratios.insert(case.into(), value);
    }

    /// Prints the figures and the ratios. Writes them to `json` too, with the conditions.
    pub(crate) fn publish(
        mut self,
        quick: bool,
        load: f64,
        json: Option<&Path>,
    ) -> Result<(), Box<dyn Error>> {
        self.print();
        if let Some(file) = json {
            self.conditions = Some(Conditions::present(quick, load));
            fs::create_dir_all(file.parent().unwrap_or(Path::new("")))?;
            fs::write(file, serde_json::to_string_pretty(&self)? + "\n")?;
        }
        Ok(())
    }

    fn print(&self) {
        let mut case = "";
        for row in &self.rows {
            if row.case != case {
                case = &row.case;
                println!("\n{case}");
            }
            print!("  {:28}", row.contender);
            for (name, figure) in &row.figures {
                print!("  {name} {:>10.2}", figure.median());
            }
            println!();
        }
        println!();
        for (case, value) in &self.ratios {
            let target = target(case)
                .map(|target| format!(" target {target}"))
                .unwrap_or_default();
            println!("ratio {case} {value:.2}{target}");
        }
    }

    /// Reads what `publish` has written.
    pub(crate) fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let named = |error: &dyn Error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| named(&error))?;
        Ok(serde_json::from_str(&text).map_err(|error| named(&error))?)
    }

    /// Returns a figure of a contender in a case.
    pub(crate) fn figure(&self, case: &str, contender: &str, figure: &str) -> Option<Figure> {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.case == case && row.contender == contender)?;
        row.figures.get(figure).copied()
    }

    /// Returns the conditions of the run.
    pub(crate) fn conditions(&self) -> Conditions {
        self.conditions.clone().unwrap_or_default()
    }
}

/// Returns the middle value, the mean of the two middle ones, or 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// Returns the median over the rounds of `over / under`.
pub(crate) fn median_ratio(over: &[f64], under: &[f64]) -> f64 {
    let ratios = over.iter().zip(under).map(|(over, under)| over / under);
    median(&ratios.collect::<Vec<_>>())
}

/// The conditions of a run. Figures mean little without them.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Conditions {
    /// The system's name of the processor.
    cpu: String,
    /// Cores that the process may use.
    cores: usize,
    #[serde(default)]
    kernel: String,
    /// The compiler, with its version.
    rustc: String,
    /// The tree that was measured.
    #[serde(default)]
    commit: String,
    /// The day of the run, in UTC.
    pub(crate) date: String,
    /// Processes that wanted to run when the suite began.
    #[serde(default)]
    load: Option<f64>,
    /// The versions of the peers.
    #[serde(default)]
    peers: BTreeMap<String, String>,
    /// True for a short run, which is not published.
    pub(crate) quick: bool,
}

const PEERS: [&str; 6] = [
    "governor",
    "limitador",
    "quota",
    "redis",
    "tower_governor",
    "trypema",
];

impl Conditions {
    /// Returns the conditions of this process.
    pub(crate) fn present(quick: bool, load: f64) -> Self {
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
            load: Some(load),
            peers,
            quick,
        }
    }

    /// Returns the machine, the compiler, the tree and the day in a line.
    pub(crate) fn line(&self) -> String {
        // The version is enough of "rustc 1.95.0 (59807616e 2026-04-14)".
        let compiler = self.rustc.split(" (").next().unwrap_or_default();
        let commit = if self.commit.is_empty() {
            "commit not recorded".to_owned()
        } else {
            format!("commit {}", self.commit)
        };
        let cores = format!("{} cores", self.cores);
        let parts = [
            &self.cpu,
            &cores,
            &self.kernel,
            compiler,
            &commit,
            &self.date,
        ];
        let known = parts.into_iter().filter(|part| !part.is_empty());
        let mut line = known.map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
        if let Some(load) = self.load.filter(|load| *load >= 0.5) {
            line += &format!(", not a quiet machine (load {load:.1})");
        }
        line
    }

    /// Returns the versions of the peers in a line.
    pub(crate) fn peers(&self) -> String {
        let peers = self.peers.iter();
        let peers: Vec<_> = peers
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        peers.join(", ")
    }
}

/// Prints the conditions of a long run as JSON.
pub(crate) fn print_conditions() -> Result<(), Box<dyn Error>> {
    let conditions = Conditions::present(false, load());
    println!("{}", serde_json::to_string(&conditions)?);
    Ok(())
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
    let mut packages = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            let prefix = format!("{name} = \"");
            let line = package.lines().find_map(|line| line.strip_prefix(&prefix));
            Some(line?.trim_end_matches('"'))
        };
        if let (Some(name), Some(version)) = (field("name"), field("version"))
            && crates.contains(&name)
        {
            packages.insert(name.to_owned(), version.to_owned());
        }
    }
    packages
}
