//! The USB device behind a sound card or an input device, from Linux's sysfs.

use std::path::Path;

use super::UsbDevice;

/// The card that an ALSA sequencer client belongs to. The kernel gives cards four clients each, from 16 on
/// (`SNDRV_SEQ_GLOBAL_CLIENTS` and `SNDRV_SEQ_CLIENTS_PER_CARD` in `sound/core/seq/seq_clientmgr.c`), and
/// programs those from 128 on.
#[cfg(not(feature = "jack"))]
pub fn card_of_client(client: u32) -> Option<u32> {
    (16..128).contains(&client).then(|| (client - 16) / 4)
}

/// The USB device that a sound card is of; `None` if it is something else.
#[cfg(not(feature = "jack"))]
pub fn of_card(card: u32) -> Option<UsbDevice> {
    of_sysfs(Path::new(&format!("/sys/class/sound/card{card}/device")))
}

/// The USB device that contains what this entry of sysfs stands for: the nearest ancestor that has a vendor.
pub fn of_sysfs(entry: &Path) -> Option<UsbDevice> {
    let entry = entry.canonicalize().ok()?;
    let device = entry.ancestors().find(|folder| folder.join("idVendor").is_file())?;
    let read = |name: &str| std::fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    let hex = |name: &str| u16::from_str_radix(&read(name)?, 16).ok();
    Some(UsbDevice {
        vendor_id: hex("idVendor")?,
        product_id: hex("idProduct")?,
        serial: read("serial").filter(|serial| !serial.is_empty()),
        bus: read("busnum").and_then(|bus| bus.parse().ok()),
        address: read("devnum").and_then(|address| address.parse().ok()),
        path: device.file_name().and_then(|name| name.to_str()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "jack"))]
    #[test]
    fn hardware_clients_are_of_their_cards() {
        let cards = [0, 15, 16, 20, 23, 24, 127, 128].map(card_of_client);
        assert_eq!(cards, [None, None, Some(0), Some(1), Some(1), Some(2), Some(27), None]);
    }

    #[test]
    fn a_device_is_read_from_the_folders_around_it() {
        let root = std::env::temp_dir().join(format!("conductor-usb-{}", std::process::id()));
        let interface = root.join("usb1/1-2.4/1-2.4:1.0/sound/card1");
        std::fs::create_dir_all(&interface).unwrap();
        for (name, text) in [("idVendor", "17cc\n"), ("idProduct", "1700\n"), ("busnum", "1\n"), ("devnum", "9\n")] {
            std::fs::write(root.join("usb1/1-2.4").join(name), text).unwrap();
        }
        let usb = of_sysfs(&interface);
        let elsewhere = of_sysfs(&root);
        std::fs::remove_dir_all(&root).unwrap();
        let expected = UsbDevice {
            vendor_id: 0x17cc,
            product_id: 0x1700,
            serial: None,
            bus: Some(1),
            address: Some(9),
            path: Some("1-2.4".into()),
        };
        assert_eq!(usb, Some(expected));
        assert_eq!(elsewhere, None);
    }
}
