// A device is drawn from its profile, or from what was heard, and a hostile profile stays within bounds.

import { expect, test } from 'vitest'

import { parseEvent } from '../stream/event-text'
import { eventOf, heardPicture, isBlack, pictureOf } from './picture'

test('a profile has its controls at their places, and the same key as their events', () => {
  const picture = pictureOf({
    id: 'x', vendor: 'Acme', name: 'Pads', layout: [1, 2],
    series: [{ kind: 'pad', controls: ['pad 1: note 36 ch 9', 'pad 2: note 37 ch 9'], places: [[1, 1], [1, 2]] }, { kind: 'fader', controls: ['fader 1: cc 7'] }],
  })
  expect(picture).toMatchObject({ title: 'Acme Pads', isKnown: true, rows: 1, columns: 2 })
  expect(picture.placed.map(({ key, at }) => [key, at])).toEqual([['note 36 9', [1, 1]], ['note 37 9', [1, 2]]])
  expect(picture.loose.map(({ shape, controls }) => [shape, controls[0]?.key])).toEqual([['fader', 'cc 7 0']])
  expect(parseEvent(eventOf('note 36 ch 9') ?? '').control).toBe('note 36 9')
})

test('a device is drawn as it comes, and what it sends in another mode is not drawn over it', () => {
  const lights = [{ id: 'palette', message: 'note', values: ['off = 0', 'red = 5'] }]
  const picture = pictureOf({
    id: 'x', vendor: 'Acme', name: 'Grid', layout: [1, 1], modes: [{ name: 'Programmer' }, { name: 'Live' }], lights,
    series: [
      { kind: 'pad', controls: ['pad 1: note 81'], places: [[1, 1]], modes: ['Programmer'], light: 'palette' },
      { kind: 'pad', controls: ['pad 1: note 64'], places: [[1, 1]], modes: ['Live'] },
      { kind: 'fader', controls: ['fader 1: cc 7'], modes: [] },
    ],
  })
  expect(picture.placed.map(({ key, light }) => [key, light?.id])).toEqual([['note 81 0', 'palette']])
  expect(picture.loose.map(({ controls }) => controls[0]?.light)).toEqual([null])
})

test('places that are none, and controls without number, are not drawn there', () => {
  const picture = pictureOf({
    id: 'x', vendor: '', name: '', layout: [1e9, 1e9],
    series: [{ kind: 'pad', controls: Array.from({ length: 5000 }, (_, at) => `p${at}: note ${at % 128}`), places: [[0, 1], [1, 9e9]] }],
  })
  expect(picture.placed).toEqual([])
  expect(picture.columns).toBeLessThanOrEqual(40)
  expect(picture.loose[0]?.controls.length).toBeLessThanOrEqual(400)
})

test('what was heard is a keyboard and a bank of faders, in order', () => {
  const heard = ['note-on 61 100', 'note-off 60', 'cc 7 3', 'osc /go', 'clock'].map((text) => ({ text, parts: parseEvent(text), name: null }))
  const picture = heardPicture('keys', heard)
  expect(picture.loose.map(({ shape, controls }) => [shape, controls.map(({ name }) => name)])).toEqual([
    ['button', ['/go']], ['fader', ['CC 7']], ['key', ['C4', 'C♯4']],
  ])
  const keys = picture.loose.at(-1)?.controls ?? []
  expect(keys.map(isBlack)).toEqual([false, true])
  expect(keys[0]?.event).toBe('note-on 60 100')
})
