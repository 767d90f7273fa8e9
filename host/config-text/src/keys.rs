//! The keys of a table: what they are called and which is first. What stands around a key goes with it.

use toml_edit::{Item, Key, TableLike};

/// Gives a key another name; it stays where it is. Nothing changes if there is no such key, or one of the new name.
pub fn rename(table: &mut dyn TableLike, old: &str, new: &str) {
    if table.contains_key(new) || !table.contains_key(old) {
        return;
    }
    for key in keys(table) {
        let Some(item) = table.remove(key.get()) else { continue };
        put_last(table, if key.get() == old { new } else { key.get() }, &key, item);
    }
}

/// Puts a key before all others.
pub fn put_first(table: &mut dyn TableLike, first: &str) {
    for key in keys(table).iter().filter(|key| key.get() != first) {
        let Some(item) = table.remove(key.get()) else { continue };
        put_last(table, key.get(), key, item);
    }
}

/// The keys of a table, in its order.
fn keys(table: &dyn TableLike) -> Vec<Key> {
    table.iter().filter_map(|(name, _)| table.key(name).cloned()).collect()
}

/// Puts an entry behind all others, with what stood around its key.
fn put_last(table: &mut dyn TableLike, name: &str, around: &Key, item: Item) {
    table.insert(name, item);
    if let Some(mut placed) = table.key_mut(name) {
        *placed.leaf_decor_mut() = around.leaf_decor().clone();
        *placed.dotted_decor_mut() = around.dotted_decor().clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml_edit::DocumentMut;

    const TEXT: &str = "# one\na = 1 # first\n# two\nb = 2\nc = 3\n";

    fn changed(change: impl FnOnce(&mut dyn TableLike)) -> String {
        let mut document: DocumentMut = TEXT.parse().unwrap();
        change(document.as_table_mut());
        document.to_string()
    }

    #[test]
    fn a_renamed_key_stays_where_it_is_with_its_comments() {
        assert_eq!(changed(|table| rename(table, "b", "d")), TEXT.replace("b = 2", "d = 2"));
        assert_eq!(changed(|table| rename(table, "b", "a")), TEXT, "there is one of this name");
        assert_eq!(changed(|table| rename(table, "x", "y")), TEXT, "there is none of this name");
    }

    #[test]
    fn a_key_is_put_first_with_its_comments() {
        let first = "# two\nb = 2\n# one\na = 1 # first\nc = 3\n";
        assert_eq!(changed(|table| put_first(table, "b")), first);
        assert_eq!(changed(|table| put_first(table, "a")), TEXT);
    }
}
