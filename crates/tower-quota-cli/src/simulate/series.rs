/// The maximum number of spans. Above it, neighbours are merged.
const MOST: usize = 480;

/// Counts admitted and refused requests over time.
///
/// The length of a log is unknown before its end, so spans begin with a second and double.
#[derive(Clone, Debug)]
pub(super) struct Series {
    start_micros: Option<u64>,
    span_micros: u64,
    counts: Vec<[u64; 2]>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            start_micros: None,
            span_micros: 1_000_000,
            counts: Vec::new(),
        }
    }
}

impl Series {
    pub(super) fn count(&mut self, micros: u64, is_admitted: bool) {
        let start = *self
            .start_micros
            .get_or_insert(micros - micros % self.span_micros);
        while (micros - start) / self.span_micros >= MOST as u64 {
            self.counts = self.counts.chunks(2).map(sum).collect();
            self.span_micros *= 2;
        }
        let at = usize::try_from((micros - start) / self.span_micros).unwrap_or(MOST - 1);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, [0; 2]);
        }
        self.counts[at][usize::from(!is_admitted)] += 1;
    }

    pub(super) const fn span_micros(&self) -> u64 {
        self.span_micros
    }

    /// Returns the spans, by their start in microseconds since 1970, with admitted and refused
    /// requests.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u64, [u64; 2])> + '_ {
        let start = self.start_micros.unwrap_or(0);
        (0..)
            .zip(&self.counts)
            .map(move |(at, counts)| (start + at * self.span_micros, *counts))
    }
}

fn sum(pair: &[[u64; 2]]) -> [u64; 2] {
    pair.iter().fold([0; 2], |sum, counts| {
        [sum[0] + counts[0], sum[1] + counts[1]]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_double_and_keep_every_count() {
        let mut series = Series::default();
        for second in 0..10_000 {
            series.count(1_000_000_000 + second * 1_000_000, second % 4 != 0);
        }
        assert!(series.counts.len() <= MOST);
        let total = series.spans().fold([0; 2], |sum, (_, counts)| {
            [sum[0] + counts[0], sum[1] + counts[1]]
        });
        assert_eq!(total, [7_500, 2_500]);
        assert_eq!(series.span_micros(), 32_000_000);
    }
}
