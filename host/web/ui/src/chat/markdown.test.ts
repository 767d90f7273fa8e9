// The Markdown of answers becomes a few known kinds of blocks; HTML in it stays text.

import { expect, test } from 'vitest'

import { parse } from './markdown'

test('blocks are told apart', () => {
  expect(parse('# Title\n\nOne *two* **three** `four`.\n\n- a\n- b\n\n> said\n\n```toml\nx = 1\n```\n---').map(({ kind }) => kind)).toEqual([
    'heading', 'paragraph', 'list', 'quote', 'code', 'rule',
  ])
  expect(parse('One *two* **three** `four`.')).toEqual([{
    kind: 'paragraph',
    parts: [
      { kind: 'text', text: 'One ' }, { kind: 'emphasis', parts: [{ kind: 'text', text: 'two' }] }, { kind: 'text', text: ' ' },
      { kind: 'strong', parts: [{ kind: 'text', text: 'three' }] }, { kind: 'text', text: ' ' }, { kind: 'code', text: 'four' },
      { kind: 'text', text: '.' },
    ],
  }])
})

test('markup, pictures and links that do something are text', () => {
  for (const text of ['<img src=x onerror=alert(1)>', '<script>alert(1)</script>', '[x](javascript:alert(1))', '[x](data:text/html,x)', '[x](/v1/undo)']) {
    expect(parse(text)).toEqual([{ kind: 'paragraph', parts: [{ kind: 'text', text }] }])
  }
  expect(JSON.stringify(parse('![x](https://example.org/x.png)'))).not.toContain('image')
  expect(parse('[x](https://example.org/)')).toEqual([{ kind: 'paragraph', parts: [{ kind: 'link', text: 'x', url: 'https://example.org/' }] }])
})

test('an answer that is not whole yet is shown as far as it is', () => {
  expect(parse('```\nlet x')).toEqual([{ kind: 'code', text: 'let x' }])
  expect(parse('**not yet')).toEqual([{ kind: 'paragraph', parts: [{ kind: 'text', text: '**not yet' }] }])
})

test('texts that are made to be deep come to an end', () => {
  expect(parse('>'.repeat(10_000)).length).toBe(1)
  expect(parse('- '.repeat(5000)).length).toBe(1)
  expect(parse('*_'.repeat(1000)).length).toBe(1)
})
