// A plan that was shown and not meant.

import { ApiError, post, postLeaving } from './client'

/** Has a plan wait no longer. Gives false if it did not wait any more: it was decided elsewhere, or it has expired. */
export async function withdraw(id: string): Promise<boolean> {
  try {
    await post('/v1/plans/{id}/reject', { id })
    return true
  } catch (error) {
    if (error instanceof ApiError && (error.code === 'not_found' || error.code === 'expired')) return false
    throw error
  }
}

/** The same from a page that is left. */
export function withdrawLeaving(id: string): void {
  postLeaving('/v1/plans/{id}/reject', { id })
}
