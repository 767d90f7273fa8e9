// What others wrote shows what it is made of, and is bounded.

import { expect, test } from 'vitest'

import { plain, plainLines } from './plain'

test('characters that hide or move text are shown by their numbers', () => {
  expect(plain('a\u202eb\u200bc\u0007d\u2066e\u00ade')).toBe('a\\u{202e}b\\u{200b}c\\u{7}d\\u{2066}e\\u{ad}e')
  expect(plain('two\nlines\u2028')).toBe('two\\u{a}lines\\u{2028}')
  expect(plainLines('two\r\nlines\tand\u202e')).toBe('two\nlines\tand\\u{202e}')
})

test('no text reads like an escape of ours', () => {
  expect(plain('\\u{202e}')).toBe('\\\\u{202e}')
  expect(plain('a\\b')).toBe('a\\b')
})

test('plain words and markup stay as they are', () => {
  for (const text of ['<script>alert(1)</script>', 'Größe 音楽 שלום', 'é ½ €']) expect(plain(text)).toBe(text)
})

test('a text that is too long is cut, and says by how much', () => {
  expect(plain('x'.repeat(1_000_000), 10)).toBe(`${'x'.repeat(10)}… (+999990)`)
  expect(plain(null)).toBe('')
})
