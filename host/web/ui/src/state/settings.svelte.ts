// What a person chose for this browser: language and colour scheme. Kept in the browser, and nowhere else.

import { LANGUAGES, type Language } from '../text/languages'

export type Scheme = 'system' | 'light' | 'dark'

function kept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    // A browser may forbid it: what was chosen then holds for this visit.
    return null
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // As above.
  }
}

function firstLanguage(): Language {
  const wanted = [kept('language') ?? '', ...navigator.languages.map((tag) => tag.split('-')[0] ?? '')]
  return LANGUAGES.find((language) => language === wanted.find((tag) => LANGUAGES.some((known) => known === tag))) ?? 'en'
}

class Settings {
  language = $state<Language>(firstLanguage())
  scheme = $state<Scheme>((['light', 'dark'] as const).find((scheme) => scheme === kept('scheme')) ?? 'system')

  constructor() {
    this.#show()
  }

  speak(language: Language): void {
    this.language = language
    keep('language', language)
    this.#show()
  }

  paint(scheme: Scheme): void {
    this.scheme = scheme
    keep('scheme', scheme)
    this.#show()
  }

  #show(): void {
    document.documentElement.lang = this.language
    document.documentElement.dataset['scheme'] = this.scheme
  }
}

export const settings = new Settings()
