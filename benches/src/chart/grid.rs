//! The figures of one picture.

use super::pictures::{Bars, Picture};
use crate::report::Report;

/// Groups of bars. A figure that was not measured is missing.
pub(super) struct Grid {
    pub(super) picture: Picture,
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<Series>,
    /// A figure that is drawn as a line over all groups.
    pub(super) bound: Option<f64>,
}

/// The bars of one colour: one for each group.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) figures: Vec<Option<f64>>,
}

impl Grid {
    pub(super) fn of(report: &Report, picture: &Picture) -> Self {
        let series = match picture.bars {
            Bars::Contenders => by_contender(report, picture),
            Bars::Cases(cases) => by_case(report, picture, cases),
        };
        let bound = picture.bound.and_then(|figure| {
            let figures = report.rows().iter().map(|row| row.figures.get(figure));
            figures.flatten().next().copied()
        });
        let groups = picture.groups.iter().map(|group| spoken(group)).collect();
        Self {
            picture: *picture,
            groups,
            series,
            bound,
        }
        .without_empty_groups()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Returns all figures that are drawn.
    pub(super) fn figures(&self) -> impl Iterator<Item = f64> {
        let measured = self.series.iter().flat_map(|series| &series.figures);
        measured.copied().flatten().chain(self.bound)
    }

    fn without_empty_groups(mut self) -> Self {
        for group in (0..self.groups.len()).rev() {
            if self
                .series
                .iter()
                .all(|series| series.figures[group].is_none())
            {
                self.groups.remove(group);
                self.series
                    .iter_mut()
                    .for_each(|series| _ = series.figures.remove(group));
            }
        }
        self
    }
}

/// Returns the distinct names, in the order in which they first appear.
fn by_contender(report: &Report, picture: &Picture) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (group, name) in picture.groups.iter().enumerate() {
        let case = format!("{}/{name}", picture.prefix);
        for row in report.rows().iter().filter(|row| row.case == case) {
            let Some(&figure) = row.figures.get(picture.figure) else {
                continue;
            };
            let known = series
                .iter()
                .position(|series| series.name == row.contender);
            let position = known.unwrap_or_else(|| {
                series.push(Series {
                    name: row.contender.clone(),
                    figures: vec![None; picture.groups.len()],
                });
                series.len() - 1
            });
            series[position].figures[group] = Some(figure);
        }
    }
    series
}

fn by_case(report: &Report, picture: &Picture, cases: &[&str]) -> Vec<Series> {
    let figure = |case: &str, group: &str| {
        let case = format!("{}/{case}/{group}", picture.prefix);
        report
            .rows()
            .iter()
            .find(|row| row.case == case)?
            .figures
            .get(picture.figure)
            .copied()
    };
    let series = cases.iter().map(|case| Series {
        name: spoken(case),
        figures: picture
            .groups
            .iter()
            .map(|group| figure(case, group))
            .collect(),
    });
    series
        .filter(|series| series.figures.iter().any(Option::is_some))
        .collect()
}

/// Returns a part of a case's name in words.
fn spoken(part: &str) -> String {
    part.replace('/', ", ").replace('-', " ")
}
