//! Archives that the kernel unpacks into its first file system: cpio, format "newc".
//!
//! Several archives one behind the other are one file system to the kernel. So what changes from run to run
//! is simply appended to what does not.

/// An archive being written. Folders must come before what is in them.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

impl Archive {
    /// A folder.
    pub fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, &[]);
    }

    /// A file that anyone may read.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o644, content);
    }

    /// A file that anyone may run.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o755, content);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, destination: &str) {
        self.entry(path, LINK, destination.as_bytes());
    }

    /// The finished archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file in an initial file system is below 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        self.bytes.extend_from_slice(b"070701");
        // inode, mode, owner, group, links, date, size, device (2), special device (2), name's size, checksum
        for field in [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_header_a_name_and_a_content_each_aligned() {
        let mut archive = Archive::default();
        archive.program("init", b"#!/bin/sh\n");
        let bytes = archive.finish();
        let header = "070701000000010000\
                      81ed0000000000000000000000010000\
                      00000000000a0000000000000000000000000000000000000005\
                      00000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..116], b"init\0\0");
        assert_eq!(&bytes[116..128], b"#!/bin/sh\n\0\0");
        assert_eq!(&bytes[128..134], b"070701");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
    }
}
