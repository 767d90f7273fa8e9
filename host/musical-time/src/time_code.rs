//! MIDI time code (MTC): hours, minutes, seconds and frames, from quarter frames and full frames.

/// How many frames a second has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRate {
    /// 24, as films have.
    F24,
    /// 25, as PAL and SECAM have.
    F25,
    /// 29.97 (30000/1001), as NTSC has. Counted by 30, without the first two numbers of each minute but every tenth.
    F2997Drop,
    /// 30.
    F30,
}

impl FrameRate {
    /// By the two bits that say it.
    fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::F24,
            1 => Self::F25,
            2 => Self::F2997Drop,
            _ => Self::F30,
        }
    }

    /// Frame numbers in a second.
    fn numbers(self) -> u32 {
        match self {
            Self::F24 => 24,
            Self::F25 => 25,
            Self::F2997Drop | Self::F30 => 30,
        }
    }

    /// Frames in a second.
    fn per_second(self) -> f64 {
        if self == Self::F2997Drop { 30_000.0 / 1001.0 } else { self.numbers().into() }
    }
}

/// A time code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCode {
    /// 0 to 23.
    pub hours: u8,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 up to below the frames of a second.
    pub frames: u8,
    /// How many frames a second has.
    pub rate: FrameRate,
}

/// Frame numbers that 29.97 drops in ten minutes.
const DROPPED: u32 = 18;

impl TimeCode {
    /// One whose numbers are all in their ranges.
    fn new(hours: u8, minutes: u8, seconds: u8, frames: u8, rate: FrameRate) -> Option<Self> {
        let exists = hours < 24 && minutes < 60 && seconds < 60 && u32::from(frames) < rate.numbers();
        let is_dropped = rate == FrameRate::F2997Drop && frames < 2 && seconds == 0 && !minutes.is_multiple_of(10);
        (exists && !is_dropped).then_some(Self { hours, minutes, seconds, frames, rate })
    }

    /// Which frame of the day it is, from 0.
    pub fn frame(self) -> u32 {
        let minutes = u32::from(self.hours) * 60 + u32::from(self.minutes);
        let counted = (minutes * 60 + u32::from(self.seconds)) * self.rate.numbers() + u32::from(self.frames);
        match self.rate {
            FrameRate::F2997Drop => counted - 2 * (minutes - minutes / 10),
            _ => counted,
        }
    }

    /// The time code of a frame of the day; after the last one the day begins anew.
    pub fn of_frame(frame: u32, rate: FrameRate) -> Self {
        let numbers = rate.numbers();
        let counted = if rate == FrameRate::F2997Drop {
            let (ten, minute) = (600 * numbers - DROPPED, 60 * numbers - 2);
            let (tens, rest) = (frame / ten, frame % ten);
            // The first minute of ten drops nothing.
            frame + DROPPED * tens + if rest < 2 { 0 } else { 2 * ((rest - 2) / minute) }
        } else {
            frame
        };
        let seconds = counted / numbers;
        #[expect(clippy::cast_possible_truncation, reason = "each is below 60")]
        let (hours, minutes, seconds, frames) =
            ((seconds / 3600 % 24) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, (counted % numbers) as u8);
        Self { hours, minutes, seconds, frames, rate }
    }

    /// Seconds since the time code 0.
    pub fn seconds(self) -> f64 {
        f64::from(self.frame()) / self.rate.per_second()
    }

    /// The time code of a full frame message: `F0 7F <device> 01 01 hr mn sc fr F7`. `None` if it is another message, or
    /// says a time that does not exist.
    pub fn of_full_frame(sysex: &[u8]) -> Option<Self> {
        let &[0xF0, 0x7F, _, 1, 1, hours, minutes, seconds, frames, 0xF7] = sysex else { return None };
        Self::new(hours & 0x1F, minutes, seconds, frames, FrameRate::of_bits(hours >> 5))
    }
}

/// Reads quarter frames: each says half a number, and eight of them, in two frames, a whole time code.
#[derive(Clone, Debug, Default)]
pub struct TimeCodeReader {
    halves: [u8; 8],
    /// How many have come in their order.
    count: u8,
}

impl TimeCodeReader {
    /// Nothing has come.
    pub fn new() -> Self {
        Self::default()
    }

    /// A quarter frame has come: the data byte of the message `F1`. Returns the time code that holds now, with the eighth
    /// of them: two frames after the one that they say, since that was so when the first of them came. One that is missing
    /// or out of its order has the reader wait for the next first one, so tape that runs backwards is not read.
    pub fn quarter_frame(&mut self, data: u8) -> Option<TimeCode> {
        let piece = data >> 4 & 7;
        if piece != 0 && piece != self.count {
            self.count = 0;
            return None;
        }
        self.halves[usize::from(piece)] = data & 15;
        self.count = piece + 1;
        if self.count < 8 {
            return None;
        }
        self.count = 0;
        let whole = |low: usize| self.halves[low] | self.halves[low + 1] << 4;
        let (hours, rate) = (whole(6) & 0x1F, FrameRate::of_bits(self.halves[7] >> 1));
        let said = TimeCode::new(hours, whole(4), whole(2), whole(0), rate)?;
        Some(TimeCode::of_frame(said.frame() + 2, rate))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The quarter frames that say a time code.
    fn quarters(code: TimeCode) -> [u8; 8] {
        let rate = match code.rate {
            FrameRate::F24 => 0,
            FrameRate::F25 => 1,
            FrameRate::F2997Drop => 2,
            FrameRate::F30 => 3,
        };
        let numbers = [code.frames, code.seconds, code.minutes, code.hours | rate << 5];
        std::array::from_fn(|piece| {
            let half = numbers[piece / 2] >> (piece % 2 * 4) & 15;
            u8::try_from(piece).unwrap() << 4 | half
        })
    }

    fn read(reader: &mut TimeCodeReader, bytes: &[u8]) -> Vec<TimeCode> {
        bytes.iter().filter_map(|byte| reader.quarter_frame(*byte)).collect()
    }

    fn code(hours: u8, minutes: u8, seconds: u8, frames: u8, rate: FrameRate) -> TimeCode {
        TimeCode::new(hours, minutes, seconds, frames, rate).unwrap()
    }

    #[test]
    fn eight_quarter_frames_say_what_was_two_frames_ago() {
        let mut reader = TimeCodeReader::new();
        let said = code(23, 59, 59, 24, FrameRate::F25);
        let found = read(&mut reader, &quarters(said));
        assert_eq!(found, [code(0, 0, 0, 1, FrameRate::F25)], "past midnight");
        let mut broken = quarters(said).to_vec();
        broken.remove(3);
        assert_eq!(read(&mut reader, &broken), []);
        assert_eq!(read(&mut reader, &quarters(said)).len(), 1, "and goes on with the next");
        let backwards: Vec<u8> = quarters(said).into_iter().rev().collect();
        assert_eq!(read(&mut reader, &backwards), []);
    }

    #[test]
    fn drop_frame_leaves_out_two_numbers_a_minute_but_every_tenth() {
        let drop = FrameRate::F2997Drop;
        let next = |now: TimeCode| TimeCode::of_frame(now.frame() + 1, drop);
        assert_eq!(next(code(0, 0, 59, 29, drop)), code(0, 1, 0, 2, drop));
        assert_eq!(next(code(0, 9, 59, 29, drop)), code(0, 10, 0, 0, drop));
        assert_eq!(TimeCode::new(0, 1, 0, 0, drop), None, "there is no such number");
        // One hour of time code is one hour by the clock, but for a few milliseconds.
        let hour = code(1, 0, 0, 0, drop).seconds();
        assert!((hour - 3600.0).abs() < 0.01, "{hour}");
    }

    #[test]
    fn a_full_frame_says_it_at_once() {
        let full = [0xF0, 0x7F, 0x7F, 1, 1, 0x61, 2, 3, 4, 0xF7];
        assert_eq!(TimeCode::of_full_frame(&full), Some(code(1, 2, 3, 4, FrameRate::F30)));
        assert_eq!(TimeCode::of_full_frame(&full[..9]), None);
        assert_eq!(TimeCode::of_full_frame(&[0xF0, 0x7F, 0, 1, 1, 0x1F, 2, 3, 4, 0xF7]), None, "hour 31");
    }

    fn rates() -> impl Strategy<Value = FrameRate> {
        prop_oneof![Just(FrameRate::F24), Just(FrameRate::F25), Just(FrameRate::F2997Drop), Just(FrameRate::F30),]
    }

    proptest! {
        #[test]
        fn a_frame_has_one_time_code(frame in 0_u32..2_000_000, rate in rates()) {
            let found = TimeCode::of_frame(frame, rate);
            prop_assert_eq!(TimeCode::new(found.hours, found.minutes, found.seconds, found.frames, rate), Some(found));
            prop_assert_eq!(found.frame(), frame);
        }

        #[test]
        fn any_quarter_frames_say_a_time_that_exists(bytes in proptest::collection::vec(0_u8..128, 0..200)) {
            for found in read(&mut TimeCodeReader::new(), &bytes) {
                prop_assert!(found.hours < 24 && found.minutes < 60 && found.seconds < 60 && found.frames < 30);
                prop_assert!(found.seconds() < 86_500.0);
            }
        }
    }
}
