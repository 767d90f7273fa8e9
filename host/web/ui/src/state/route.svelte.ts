// Which page is shown: the address of the browser, without a reload.

/** The pages, in the order of the navigation. Their addresses are without a dot, which the server takes for a file. */
export const PAGES = ['live', 'mappings', 'devices', 'plans', 'features', 'chat', 'record', 'settings'] as const

export type Page = (typeof PAGES)[number]

class Route {
  /** The path's parts: `/plans/12ab` is `['plans', '12ab']`. */
  parts = $state.raw<string[]>([])
  query = $state.raw(new URLSearchParams())

  constructor() {
    this.#read()
    addEventListener('popstate', () => this.#read())
    addEventListener('click', (event) => this.#follow(event))
  }

  /** The page; what is unknown is the first one. */
  get page(): Page {
    return PAGES.find((page) => page === this.parts[0]) ?? 'live'
  }

  /** What is meant on the page, such as a plan's id. */
  get item(): string | null {
    return this.parts[1] ?? null
  }

  /** Goes to another address of the shell. */
  go(address: string): void {
    if (address !== location.pathname + location.search) history.pushState(null, '', address)
    this.#read()
  }

  #read(): void {
    this.parts = location.pathname.split('/').filter(Boolean).map(decoded)
    this.query = new URLSearchParams(location.search)
  }

  #follow(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.origin !== location.origin || link.target || link.hasAttribute('download')) return
    event.preventDefault()
    this.go(link.pathname + link.search)
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const route = new Route()
