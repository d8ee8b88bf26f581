use tower_quota_core::Decision;

/// The [`Decision`] about a request, as an argument of axum handlers.
///
/// You get `None` if no limit applies, if the store failed, or without
/// [`attach_decision`](crate::RateLimitLayer::attach_decision).
///
/// ```
/// use tower_quota::RequestDecision;
///
/// async fn left(RequestDecision(decision): RequestDecision) -> String {
///     match decision.as_ref().and_then(|decision| decision.status("minute")) {
///         Some(minute) => format!("{} left this minute", minute.remaining()),
///         None => String::from("not counted"),
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestDecision(pub Option<Decision>);
