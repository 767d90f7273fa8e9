//! Device numbers: interned names, numbered in the order of first use, and stable while the host runs.

use std::collections::HashMap;

use conductor_event::DeviceId;
use parking_lot::RwLock;

/// The numbers behind `device` in event records.
#[derive(Debug, Default)]
pub struct DeviceTable {
    inner: RwLock<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    names: Vec<DeviceId>,
    numbers: HashMap<DeviceId, u32>,
}

impl DeviceTable {
    /// The number of `device`, given out now if it has none. Waits for a lock: workers remember
    /// the answer.
    pub fn number(&self, device: &DeviceId) -> u32 {
        if let Some(number) = self.inner.read().numbers.get(device) {
            return *number;
        }
        let mut inner = self.inner.write();
        if let Some(number) = inner.numbers.get(device) {
            return *number;
        }
        let number = u32::try_from(inner.names.len()).unwrap_or(u32::MAX);
        inner.names.push(device.clone());
        inner.numbers.insert(device.clone(), number);
        number
    }

    /// The device behind a number.
    pub fn device(&self, number: u32) -> Option<DeviceId> {
        self.inner.read().names.get(number as usize).cloned()
    }
}
