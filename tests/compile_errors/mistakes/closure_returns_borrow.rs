use tower_quota::{Limit, Quota, key};

fn main() {
    let tenant = key::from_fn("tenant", |head| head.headers().get("x-tenant")?.to_str().ok());
    let _ = Limit::new("tenant", Quota::per_minute(60)).by(tenant);
}
