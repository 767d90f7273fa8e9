// The YAML at the beginning of a file is separated from its body.

import { expect, test } from 'vitest'

import { split } from './front-matter'

test('what stands between the first two lines of hyphens is the front matter', () => {
  expect(split('---\nname: a\n---\n# A\n---\nmore')).toEqual({ front: 'name: a', body: '# A\n---\nmore' })
  expect(split('---\r\nname: a\r\n---')).toEqual({ front: 'name: a', body: '' })
  expect(split('# A\n---\nb\n---')).toEqual({ front: '', body: '# A\n---\nb\n---' })
  expect(split('---\nnever closed')).toEqual({ front: '', body: '---\nnever closed' })
})
