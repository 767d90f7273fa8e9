//! Items in the feature's store, one key each, shared by all of its instances.

use conductor_feature::store::Table;
use conductor_feature::{Error, clock};

use crate::item::Item;

/// The key that holds the last number that was given out.
const LAST: &str = "last";
/// What keys of items begin with.
const ITEM: &str = "item/";

/// Numbers are written with their zeros, so that keys sort as numbers do.
fn key(number: u32) -> String {
    format!("{ITEM}{number:010}")
}

/// Opens an item under the next number. Two instances may try at once: one of them tries again.
pub fn open(table: &Table, title: &str, description: &str) -> Result<Item, Error> {
    loop {
        let before = table.get(LAST)?;
        let last: u32 = before.as_deref().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0);
        let item = Item::open(last + 1, title, description, clock::now()).map_err(Error::Invalid)?;
        if table.swap(LAST, before.as_deref(), item.number.to_string().as_bytes())? {
            table.set(&key(item.number), &encoded(&item)?)?;
            return Ok(item);
        }
    }
}

/// The item of this number.
pub fn item(table: &Table, number: u32) -> Result<Item, Error> {
    let bytes = table.get(&key(number))?.ok_or_else(|| Error::Invalid(format!("there is no item {number}")))?;
    decoded(&bytes)
}

/// Changes an item; retries if another instance changes it in between (compare and swap).
pub fn change(table: &Table, number: u32, change: impl Fn(&mut Item) -> Result<(), String>) -> Result<Item, Error> {
    loop {
        let before = table.get(&key(number))?.ok_or_else(|| Error::Invalid(format!("there is no item {number}")))?;
        let mut item = decoded(&before)?;
        change(&mut item).map_err(Error::Invalid)?;
        if table.swap(&key(number), Some(&before), &encoded(&item)?)? {
            return Ok(item);
        }
    }
}

/// Every item, oldest first.
pub fn all(table: &Table) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let keys = table.keys(ITEM, after.as_deref())?;
        let Some(last) = keys.last() else { return Ok(items) };
        after = Some(last.clone());
        for key in &keys {
            if let Some(bytes) = table.get(key)? {
                items.push(decoded(&bytes)?);
            }
        }
    }
}

fn encoded(item: &Item) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(item).map_err(|error| Error::Failed(error.to_string()))
}

fn decoded(bytes: &[u8]) -> Result<Item, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Failed(format!("an item can't be read: {error}")))
}
