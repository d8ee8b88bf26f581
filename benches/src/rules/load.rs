//! The time and the memory of loading documents, in a process of its own.

use std::error::Error;

use tower_quota::Policy;
use tower_quota_rules::Format;

use super::documents::{OVERRIDES, Size, document};
use super::rules;
use crate::child;
use crate::report::{Report, median};
use crate::timing::thread_seconds;

/// Adds the times and the bytes.
pub(super) fn measure(quick: bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let times = if quick { 3 } else { 9 };
    for (size, format) in [
        (Size::Ten, "yaml"),
        (Size::TenThousand, "yaml"),
        (Size::TenThousand, "json"),
        (Size::Million, "yaml"),
        (Size::Million, "json"),
    ] {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..times {
            let asked = child::ask(&["rules-worker", size.name(), format])?;
            figures
                .iter_mut()
                .zip(asked)
                .for_each(|(figures, figure)| figures.push(figure));
        }
        let [load, swap, bytes] = &mut figures;
        let mut row = vec![("load ms", median(load)), ("swap ms", median(swap))];
        if size == Size::Million {
            row.push(("bytes/override", median(bytes)));
        }
        report.row(&format!("rules/load/{}", size.name()), format, row);
    }
    Ok(())
}

/// Prints the milliseconds of loading, those until a layer can use it, and the bytes per override.
pub(crate) fn worker(size: &str, format: &str) -> Result<(), Box<dyn Error>> {
    let size = Size::ALL
        .into_iter()
        .find(|known| known.name() == size)
        .ok_or("no such document")?;
    let format = match format {
        "json" => Format::Json,
        _ => Format::Yaml,
    };
    // What is the same without overrides is loaded before.
    let base = rules(&document(Size::TenThousand), Format::Yaml)?;
    let text = document(size);
    let text = if format == Format::Yaml {
        text
    } else {
        rules(&text, Format::Yaml)?.document().to_text(format)
    };
    let before = child::resident();
    let began = thread_seconds()?;
    let loaded = rules(&text, format)?;
    let load = thread_seconds()? - began;
    let began = thread_seconds()?;
    let layer = layer(loaded.policy());
    let swap = thread_seconds()? - began;
    drop(layer);
    let bytes = (child::resident() - before) / OVERRIDES as f64;
    drop((loaded, base));
    println!("{} {} {bytes}", load * 1e3, swap * 1e3);
    Ok(())
}

fn layer(policy: Policy) -> impl Sized {
    tower_quota::RateLimitLayer::new(tower_quota::MemoryStore::new(), policy)
}
