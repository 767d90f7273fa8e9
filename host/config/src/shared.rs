//! Lists whose elements are shared, written and read as if they were not.
//!
//! A configuration of ten thousand mappings that differs from the one before in a single one shares all others with it.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<T: Serialize, S: Serializer>(list: &[Arc<T>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list.iter().map(|element| &**element))
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Arc<T>>, D::Error> {
    Ok(Vec::deserialize(deserializer)?.into_iter().map(Arc::new).collect())
}
