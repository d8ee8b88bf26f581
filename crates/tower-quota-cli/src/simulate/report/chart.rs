use crate::log::time;
use crate::simulate::series::Series;

const LEFT: u64 = 72;
const TOP: u64 = 10;
const RIGHT: u64 = 950;
const BOTTOM: u64 = 230;

/// The number of labels along an axis, after the first.
const LABELS: u64 = 4;

pub(super) fn svg(series: &Series) -> String {
    let mut out = String::from("<svg viewBox=\"0 0 960 256\" role=\"img\">");
    let mut spans: Vec<(u64, [u64; 2])> = series.spans().collect();
    // Drop the last span, which is incomplete and would look like a drop in traffic.
    spans.truncate(spans.len().saturating_sub(1).max(1));
    let most = spans.iter().flat_map(|(_, counts)| *counts).max();
    let most = most.unwrap_or(0).max(1);
    let steps = (spans.len() as u64).saturating_sub(1).max(1);
    let y = |count: u64| BOTTOM - (BOTTOM - TOP) * count / most;
    for label in 0..=LABELS {
        let count = most * label / LABELS;
        let y = y(count);
        out += &format!(
            "<path d=\"M{LEFT} {y}H{RIGHT}\"/><text x=\"64\" y=\"{y}\" class=\"count\">{count}</text>"
        );
        let x = LEFT + (RIGHT - LEFT) * label / LABELS;
        let at = spans.get(((spans.len() - 1) as u64 * label / LABELS) as usize);
        let at = at.map_or(String::new(), |(at, _)| time::text(*at));
        out += &format!("<text x=\"{x}\" y=\"250\">{at}</text>");
    }
    for (which, name) in ["admitted", "refused"].into_iter().enumerate() {
        out += &format!("<polyline class=\"{name}\" points=\"");
        for (step, (_, counts)) in (0..).zip(&spans) {
            let x = LEFT + (RIGHT - LEFT) * step / steps;
            out += &format!("{x},{} ", y(counts[which]));
        }
        out += "\"/>";
    }
    out + "</svg>"
}
