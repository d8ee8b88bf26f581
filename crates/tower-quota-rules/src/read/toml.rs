//! TOML to a tree.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::tree::{At, Exceeded, Kind, Tree, small};
use crate::problem::{Place, Problem};

/// Reads TOML 1.0. Returns the tree, or each error of the grammar.
pub(super) fn read(text: &str) -> Result<Tree, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| invalid(error, text)).collect());
    }
    let mut tree = Tree::default();
    add_table(&mut tree, table.get_ref(), At::Offset(0))
        .map_err(|bound| vec![bound.problem(text)])?;
    Ok(tree)
}

fn add_table(tree: &mut Tree, table: &DeTable<'_>, at: At) -> Result<(), Exceeded> {
    tree.open(Kind::Map, at)?;
    for (key, value) in table {
        tree.scalar(Kind::Text, place(key), key.get_ref())?;
        add(tree, value)?;
    }
    tree.close();
    Ok(())
}

fn add(tree: &mut Tree, value: &Spanned<DeValue<'_>>) -> Result<(), Exceeded> {
    let at = place(value);
    let mut scalar = |kind, text: &str| tree.scalar(kind, at, text);
    match value.get_ref() {
        DeValue::String(text) => scalar(Kind::Text, text),
        DeValue::Integer(number) => scalar(Kind::Number, &number.to_string()),
        DeValue::Float(number) => scalar(Kind::Number, &number.to_string()),
        DeValue::Boolean(flag) => scalar(Kind::Bool, if *flag { "true" } else { "false" }),
        DeValue::Datetime(time) => scalar(Kind::Text, &time.to_string()),
        DeValue::Array(elements) => {
            tree.open(Kind::List, at)?;
            for element in elements {
                add(tree, element)?;
            }
            tree.close();
            Ok(())
        }
        DeValue::Table(table) => add_table(tree, table, at),
    }
}

fn place<T>(spanned: &Spanned<T>) -> At {
    At::Offset(small(spanned.span().start))
}

fn invalid(error: &::toml::de::Error, text: &str) -> Problem {
    let reason = error.message().replace('\n', ", ");
    let at = At::Offset(small(error.span().map_or(0, |span| span.start)));
    let text_of =
        format_args!("this is not TOML, {reason}: look for quotes and brackets here and above");
    Problem::error(Place::default(), text_of).in_line(at.line_and_column(text))
}
