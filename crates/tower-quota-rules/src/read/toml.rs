//! TOML to a tree.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::tree::{At, Kind, Tree, small};
use crate::problem::{Place, Problem};

/// Reads TOML 1.0. Returns the tree, or each error of the grammar.
pub(super) fn read(text: &str) -> Result<Tree, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| invalid(error, text)).collect());
    }
    let mut tree = Tree::default();
    add_table(&mut tree, table.get_ref(), At::Offset(0)).map_err(|problem| vec![problem])?;
    Ok(tree)
}

fn add_table(tree: &mut Tree, table: &DeTable<'_>, at: At) -> Result<(), Problem> {
    tree.open(Kind::Map, at)?;
    for (key, value) in table {
        tree.scalar(Kind::Text, place(key), key.get_ref())?;
        add(tree, value)?;
    }
    tree.close();
    Ok(())
}

fn add(tree: &mut Tree, value: &Spanned<DeValue<'_>>) -> Result<(), Problem> {
    let at = place(value);
    match value.get_ref() {
        DeValue::String(text) => tree.scalar(Kind::Text, at, text),
        DeValue::Integer(number) => tree.scalar(Kind::Number, at, &number.to_string()),
        DeValue::Float(number) => tree.scalar(Kind::Number, at, &number.to_string()),
        DeValue::Boolean(flag) => tree.scalar(Kind::Bool, at, if *flag { "true" } else { "false" }),
        DeValue::Datetime(time) => tree.scalar(Kind::Text, at, &time.to_string()),
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
    let mut problem = Problem::error(Place::default(), format_args!("this is not TOML, {reason}"));
    let (line, column) = At::Offset(small(error.span().map_or(0, |span| span.start))).line_and_column(text);
    (problem.line, problem.column) = (Some(line), Some(column));
    problem
}
