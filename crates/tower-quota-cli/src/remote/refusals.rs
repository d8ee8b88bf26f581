//! Runs `refusals`, which finds the refusals that a client complains about.

use core::time::Duration;

use clap::Args;
use http::Request;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::target::duration;
use super::{Api, TargetArguments};
use crate::failure::Failure;
use crate::output::{Ended, Output, describe};

#[derive(Args, Debug)]
pub(crate) struct RefusalsArguments {
    /// The key of a client, such as an address or an API key, or `hash:` and its hash.
    key: Option<String>,
    /// About when, such as 02:13, 02:13:30+02:00 or 2026-05-01T02:13:00Z. A time without an offset is UTC, and a time
    /// without a date is the last such time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<Timestamp>,
    /// How far from `--at`.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    within: Duration,
    /// The `x-request-id`, the trace id or the `traceparent` of a request.
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    /// The scope of the key, such as `header x-api-key`.
    #[arg(long)]
    scope: Option<String>,
    /// The refusing limit.
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// The most refusals to list of each instance.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// Shows keys, if the admin API allows it.
    #[arg(long)]
    show_keys: bool,
    /// The address of the admin API of a further instance, with the same token. Each instance remembers its own refusals.
    #[arg(long, value_name = "URL")]
    also: Vec<String>,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &RefusalsArguments) -> Ended {
    let mut instances = vec![arguments.target.connect()?];
    for address in &arguments.also {
        instances.push(arguments.target.at(address).connect()?);
    }
    let (mut lists, mut text) = (Vec::new(), String::new());
    for api in &instances {
        let list = arguments.list(api)?;
        text += &arguments.shown(&list);
        lists.push(list);
    }
    Output::new(&lists, &text)
}

impl RefusalsArguments {
    fn list(&self, api: &Api) -> Result<Value, Failure> {
        let path = format!("/v1/clients/refusals?show_keys={}", self.show_keys);
        let bounds = self.bounds();
        let body = json!({
            "key": self.key,
            "scope": self.scope,
            "limit": self.limit,
            "after": bounds.map(|[after, _]| after.to_string()),
            "before": bounds.map(|[_, before]| before.to_string()),
            "request": self.request,
            "count": self.count,
        });
        api.send_json(Request::post(path), &body)
    }

    /// Returns the earliest and the latest time.
    fn bounds(&self) -> Option<[Timestamp; 2]> {
        let at = self.at?;
        let after = at.saturating_sub(self.within).ok()?;
        Some([after, at.saturating_add(self.within).ok()?])
    }

    fn shown(&self, list: &Value) -> String {
        let refusals = &list["refusals"];
        let counts = refusals.as_array().into_iter().flatten();
        let number: u64 = counts.filter_map(|refusal| refusal["count"].as_u64()).sum();
        let (instance, since) = (&list["instance"], &list["since"]);
        let [instance, since] = [instance, since].map(|text| text.as_str().unwrap_or_default());
        let times = match self.bounds() {
            Some([after, before]) => format!(" from {after} to {before}"),
            None => String::new(),
        };
        let mut text = format!("{number} refusals{times} (UTC) on {instance}\n");
        let begin = since.parse::<Timestamp>();
        let is_complete =
            matches!((self.bounds(), begin), (Some([after, _]), Ok(begin)) if begin <= after);
        if !is_complete {
            text += &format!("this instance remembers its refusals since {since}\n");
        }
        if number > 0 {
            text += &describe(refusals);
        }
        text + "\n"
    }
}

/// Reads an instant, or a time of the last day.
fn instant(text: &str) -> Result<Timestamp, String> {
    if let Ok(timestamp) = text.parse() {
        return Ok(timestamp);
    }
    last(text, Timestamp::now()).ok_or_else(|| {
        "write a time such as 02:13, 02:13:30+02:00 or 2026-05-01T02:13:00Z".to_owned()
    })
}

/// Returns the last instant with this time of day.
fn last(text: &str, now: Timestamp) -> Option<Timestamp> {
    let offset = if text.contains(['Z', '+', '-']) {
        ""
    } else {
        "Z"
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    // With an offset, the date may be the one before or after the date in UTC.
    let mut instants = (-2..=1).rev().filter_map(|days| {
        let date = today.checked_add(days.days()).ok()?;
        format!("{date}T{text}{offset}").parse().ok()
    });
    instants.find(|instant| *instant <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_is_the_last_one() {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("12:00", Some("2026-05-01T12:00:00Z")),
            ("02:13", Some("2026-05-01T02:13:00Z")),
            ("02:13:30Z", Some("2026-05-01T02:13:30Z")),
            ("12:01", Some("2026-04-30T12:01:00Z")),
            ("02:13+02:00", Some("2026-05-01T00:13:00Z")),
            ("23:30-05:30", Some("2026-05-01T05:00:00Z")),
            ("01:00+14:00", Some("2026-05-01T11:00:00Z")),
            ("25:00", None),
            ("02:13+", None),
            ("noon", None),
            ("", None),
        ] {
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(last(text, now), expected, "{text}");
        }
    }
}
