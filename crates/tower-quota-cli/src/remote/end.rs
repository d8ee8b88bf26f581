use clap::Args;

/// The end of an override or a credit.
#[derive(Args, Debug)]
pub(crate) struct EndArguments {
    /// The time until the end, such as 2h.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    pub(super) length: Option<String>,
    /// The end, such as 2026-05-01T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
}
