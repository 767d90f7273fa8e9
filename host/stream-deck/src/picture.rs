//! What a key shows: a colour all over, and a text on it.
//!
//! The text is as large as it can be: it is broken between words and set in the largest size in which all of it fits, down to
//! a size that can still be read. What does not fit then is cut off. The letters are those of DejaVu Sans, which has Latin, Greek and
//! Cyrillic ones, arrows and the signs of a transport; a character that it has not is a box.

use std::sync::OnceLock;

use ab_glyph::{Font as _, FontRef, Glyph, PxScale, PxScaleFont, ScaleFont as _, point};
use image::{Rgb, RgbImage};

use crate::colour;

/// Sizes of letters as parts of the key's height: from a single large word to five lines.
const SIZES: [f32; 8] = [0.42, 0.36, 0.31, 0.27, 0.24, 0.21, 0.19, 0.17];
/// What stays free at each edge, as part of the key's width.
const MARGIN: f32 = 0.05;

/// The font. `None` if it can't be read, which the tests rule out.
fn font() -> Option<&'static FontRef<'static>> {
    static FONT: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    FONT.get_or_init(|| FontRef::try_from_slice(dejavu::sans_condensed::bold()).ok()).as_ref()
}

/// A key of this many pixels with the colour of a velocity all over, and a text on it.
pub fn key(width: u32, height: u32, velocity: u8, text: &str) -> RgbImage {
    let colour = colour::of_velocity(velocity);
    let mut image = RgbImage::from_pixel(width, height, Rgb(colour));
    if let Some(font) = font()
        && !text.trim().is_empty()
    {
        write(&mut image, font, text, ink(colour));
    }
    image
}

/// The colour of letters on a colour: black on bright ones, white on dark ones. The weights are those of ITU-R BT.601.
fn ink([red, green, blue]: colour::Rgb) -> colour::Rgb {
    let brightness = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    if brightness > 140_000 { [0; 3] } else { [255; 3] }
}

fn write(image: &mut RgbImage, font: &FontRef<'static>, text: &str, ink: colour::Rgb) {
    let (width, height) = (image.width() as f32, image.height() as f32);
    let room = width * (1.0 - 2.0 * MARGIN);
    let set = |size: &f32| {
        let font = font.as_scaled(PxScale::from((height * size).max(6.0)));
        let lines = lines(font, text, room);
        let fits = lines.iter().all(|line| length(font, line) <= room) && lines.len() as f32 * font.height() <= height;
        (font, lines, fits)
    };
    let largest = SIZES.iter().map(set).find(|(_, _, fits)| *fits);
    let Some((font, lines, _)) = largest.or_else(|| SIZES.last().map(set)) else { return };
    let most = ((height / font.height()) as usize).max(1);
    let lines = &lines[..lines.len().min(most)];
    let mut y = (height - lines.len() as f32 * font.height()) / 2.0 + font.ascent();
    for line in lines {
        let mut x = ((width - length(font, line)) / 2.0).max(width * MARGIN);
        for character in line.chars() {
            let glyph: Glyph = font.glyph_id(character).with_scale_and_position(font.scale(), point(x, y));
            x += font.h_advance(glyph.id);
            draw(image, font, glyph, ink);
        }
        y += font.height();
    }
}

/// The lines of a text: those that it has, broken between words if they are too long.
fn lines(font: PxScaleFont<&FontRef<'static>>, text: &str, room: f32) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if line.is_empty() || length(font, &longer) <= room {
                line = longer;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        lines.push(line);
    }
    lines
}

/// How long a line is, in pixels.
fn length(font: PxScaleFont<&FontRef<'static>>, line: &str) -> f32 {
    line.chars().map(|character| font.h_advance(font.glyph_id(character))).sum()
}

fn draw(image: &mut RgbImage, font: PxScaleFont<&FontRef<'static>>, glyph: Glyph, ink: colour::Rgb) {
    let Some(outline) = font.outline_glyph(glyph) else { return };
    let bounds = outline.px_bounds();
    outline.draw(|x, y, covered| {
        let at = |start: f32, offset: u32| u32::try_from(start as i64 + i64::from(offset)).ok();
        let (Some(x), Some(y)) = (at(bounds.min.x, x), at(bounds.min.y, y)) else { return };
        let Some(Rgb(pixel)) = image.get_pixel_mut_checked(x, y) else { return };
        for (below, above) in pixel.iter_mut().zip(ink) {
            let mixed = f32::from(*below) + (f32::from(above) - f32::from(*below)) * covered.clamp(0.0, 1.0);
            *below = mixed.round() as u8;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pixels are not as the corner is, in each half: left, right, upper, lower.
    fn inked(image: &RgbImage) -> [usize; 4] {
        let (width, height) = image.dimensions();
        let ground = *image.get_pixel(0, 0);
        let mut halves = [0; 4];
        for (x, y, pixel) in image.enumerate_pixels() {
            if *pixel != ground {
                halves[usize::from(x >= width / 2)] += 1;
                halves[2 + usize::from(y >= height / 2)] += 1;
            }
        }
        halves
    }

    #[test]
    fn a_key_without_a_text_has_its_colour_all_over() {
        for text in ["", " ", "\n"] {
            let image = key(72, 72, 96, text);
            assert!(image.pixels().all(|pixel| pixel.0 == [255, 0, 0]), "{text:?}");
        }
    }

    #[test]
    fn a_text_stands_in_the_middle_and_inside_of_the_key() {
        for (width, height) in [(72, 72), (80, 80), (96, 96), (120, 120), (112, 112)] {
            for text in ["Mute", "Next song", "Intro\nloop", "\u{416}\u{443}\u{43a}", "\u{25b6}"] {
                let image = key(width, height, 0, text);
                let [left, right, upper, lower] = inked(&image);
                assert!(
                    left > 20 && right > 20 && upper > 10 && lower > 10,
                    "{text} {width}: {left} {right} {upper} {lower}"
                );
                let is_edge = |x, y| x == 0 || y == 0 || x == width - 1 || y == height - 1;
                let edge = image.enumerate_pixels().filter(|(x, y, pixel)| is_edge(*x, *y) && pixel.0 != [0; 3]);
                assert_eq!(edge.count(), 0, "{text} {width}");
            }
        }
    }

    #[test]
    fn a_short_text_is_larger_than_a_long_one() {
        let tallest = |text| {
            let image = key(72, 72, 0, text);
            let rows: Vec<u32> =
                image.enumerate_pixels().filter(|(_, _, pixel)| pixel.0 != [0; 3]).map(|(_, y, _)| y).collect();
            rows.iter().max().unwrap() - rows.iter().min().unwrap()
        };
        assert!(tallest("On") > tallest("Bypass"), "{} {}", tallest("On"), tallest("Bypass"));
    }

    #[test]
    fn letters_are_black_on_bright_colours_and_white_on_dark_ones() {
        let has = |velocity, ink: [u8; 3]| key(72, 72, velocity, "M").pixels().any(|pixel| pixel.0 == ink);
        assert!(has(127, [0; 3]) && has(124, [0; 3]) && has(28, [0; 3]), "white, yellow and green are bright");
        assert!(has(0, [255; 3]) && has(3, [255; 3]) && has(96, [255; 3]), "black, blue and red are dark");
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        for text in ["x".repeat(64), "x ".repeat(32), "\n".repeat(64), "\u{1f600}\u{0}\u{202e}\u{301}".repeat(16)] {
            for (width, height) in [(1, 1), (16, 200), (72, 72)] {
                assert_eq!(key(width, height, 0, &text).dimensions(), (width, height));
            }
        }
    }
}
