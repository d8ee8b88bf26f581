//! Prints the public interface of a crate, an item a line.
//!
//! `tower-quota-api FILE`, where FILE is what rustdoc has written as JSON.

use std::error::Error;

use public_api::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("usage: tower-quota-api FILE")?;
    // Automatic traits follow from the fields, blanket ones from others' crates.
    let api = Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    print!("{api}");
    Ok(())
}
