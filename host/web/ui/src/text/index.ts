// Texts of the shell, in the language that the person chose.

import { settings } from '../state/settings.svelte'
import { de } from './de'
import { en } from './en'
import type { Language } from './languages'

export type Key = keyof typeof en

const TEXTS: Record<Language, Record<Key, string>> = { en, de }

/** A text, with its `{values}` filled in. With `count`, the text of `key.one` where it is 1 and there is one. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const texts = TEXTS[settings.language]
  const one = `${key}.one` as Key
  const text = values['count'] === 1 && one in texts ? texts[one] : texts[key]
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name]
    if (value === undefined) return whole
    return typeof value === 'number' ? value.toLocaleString(settings.language) : value
  })
}

/** Whether there is a text of this name. */
export function has(key: string): key is Key {
  return key in en
}

/** A moment, as people write it; the date only if it is not today's. */
export function moment(milliseconds: number): string {
  const date = new Date(milliseconds)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday
    ? date.toLocaleTimeString(settings.language)
    : date.toLocaleString(settings.language, { dateStyle: 'medium', timeStyle: 'short' })
}

/** A number. */
export function amount(value: number, digits = 0): string {
  return value.toLocaleString(settings.language, { maximumFractionDigits: digits })
}

/** Billionths of a US dollar, as dollars. */
export function dollars(billionths: number): string {
  const value = billionths / 1e9
  return value.toLocaleString(settings.language, { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 })
}
