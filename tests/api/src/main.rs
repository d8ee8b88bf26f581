//! Prints the public interface of a crate, with a line for every item.
//!
//! Run `tower-quota-api FILE`, where FILE is the JSON output of rustdoc.

use std::error::Error;

use public_api::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: tower-quota-api FILE")?;
    // Omit automatic traits, which follow from the fields, and blanket implementations of other crates.
    let api = Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    print!("{api}");
    Ok(())
}
