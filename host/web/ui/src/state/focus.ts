// The focus of a keyboard, where a button waits for an answer: browsers take it from what is disabled, and the next Tab would begin
// at the top of the page.

/** Gives the focus back to what lost it by being disabled, once it is enabled again. Returns what ends that. */
export function keepFocus(page: Document): () => void {
  let last: HTMLElement | null = null
  const remember = ({ target }: FocusEvent) => {
    last = target instanceof HTMLElement ? target : null
  }
  const observer = new MutationObserver((changes) => {
    // Where a person went elsewhere meanwhile, that has the focus.
    if (page.activeElement !== page.body || !changes.some((change) => change.target === last)) return
    if (last?.matches(':enabled')) last.focus({ preventScroll: true })
  })
  page.addEventListener('focusin', remember)
  observer.observe(page, { subtree: true, attributeFilter: ['disabled'] })
  return () => {
    page.removeEventListener('focusin', remember)
    observer.disconnect()
  }
}
