// What a person chose for this browser: language, colour scheme, and whether they were shown around. Kept in the browser, and nowhere else.

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

  /** Whether the tour of the first visit was seen or left. */
  toured = $state(kept('toured') === 'yes')
  /** Whether it is wanted once more, though there are mappings. */
  tourWanted = $state(false)

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

  /** Shows the tour once more, at the next visit of its page. */
  tourAgain(): void {
    this.toured = false
    this.tourWanted = true
  }

  endTour(): void {
    this.toured = true
    this.tourWanted = false
    keep('toured', 'yes')
  }

  #show(): void {
    document.documentElement.lang = this.language
    document.documentElement.dataset['scheme'] = this.scheme
  }
}

export const settings = new Settings()
