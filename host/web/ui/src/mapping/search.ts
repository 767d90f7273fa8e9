// Mappings looked for by what stands in them, as a person types: the text of each is made once.

/** A mapping, as far as it is needed here. */
interface Searched {
  mode?: string | null
  mapping: Record<string, unknown>
}

/** Mappings that can be searched. */
export interface Searchable<M> {
  /** Those that have this text in them, in any case, and that are let through. */
  find: (text: string, isMeant: (one: M) => boolean) => M[]
}

/**
 * Has these mappings searched, by what `said` says of each, too. Their texts are made when the first is looked for: most visits look
 * for none.
 */
export function searchable<M extends Searched>(all: readonly M[], said: (one: M) => string = () => ''): Searchable<M> {
  let texts: string[] | null = null
  return {
    find(text, isMeant) {
      const wanted = text.trim().toLowerCase()
      if (!wanted) return all.filter(isMeant)
      const made = (texts ??= all.map((one) => `${one.mode ?? ''} ${JSON.stringify(one.mapping)} ${said(one)}`.toLowerCase()))
      return all.filter((one, index) => (made[index] ?? '').includes(wanted) && isMeant(one))
    },
  }
}
