//! The height of a figure in a chart.

/// Linear from 0, or logarithmic where the smallest figures could not be seen otherwise.
pub(super) enum Scale {
    Linear { step: f64, steps: u32 },
    Logarithmic { from: i32, to: i32 },
}

/// A factor from which on the scale is logarithmic.
const FAR_APART: f64 = 40.0;

impl Scale {
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Self {
        let (least, most) = figures.fold((f64::MAX, 0.0_f64), |(least, most), figure| {
            (least.min(figure), most.max(figure))
        });
        if least > 0.0 && most / least >= FAR_APART {
            return Self::Logarithmic {
                from: least.log10().floor() as i32,
                to: most.log10().ceil() as i32,
            };
        }
        let most = most.max(f64::MIN_POSITIVE);
        // A step of 1, 2 or 5 times a power of ten, so that there are four to ten of them.
        let magnitude = 10_f64.powf((most / 4.0).log10().floor());
        let step = [5.0, 2.0, 1.0]
            .into_iter()
            .map(|of| of * magnitude)
            .find(|step| most / step >= 4.0);
        let step = step.unwrap_or(magnitude);
        Self::Linear {
            step,
            steps: (most / step).ceil() as u32,
        }
    }

    /// Returns the height of a figure: 0 at the bottom, 1 at the top.
    pub(super) fn height(&self, figure: f64) -> f64 {
        match *self {
            Self::Linear { step, steps } => figure / (step * f64::from(steps)),
            Self::Logarithmic { from, to } => {
                (figure.log10() - f64::from(from)) / f64::from(to - from)
            }
        }
        .clamp(0.0, 1.0)
    }

    /// Returns the figures of the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { step, steps } => {
                (0..=steps).map(|tick| step * f64::from(tick)).collect()
            }
            Self::Logarithmic { from, to } => (from..=to).map(|power| 10_f64.powi(power)).collect(),
        }
    }

    pub(super) const fn is_logarithmic(&self) -> bool {
        matches!(self, Self::Logarithmic { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn scale_is_logarithmic_for_distant_figures() {
        let scale = Scale::of([3.0, 100.0].into_iter());
        assert!(!scale.is_logarithmic());
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert!((scale.height(50.0) - 0.5).abs() < 1e-9);

        let scale = Scale::of([20.0, 2_000.0].into_iter());
        assert_eq!(scale.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
        assert!((scale.height(100.0) - 1.0 / 3.0).abs() < 1e-9);
    }
}
