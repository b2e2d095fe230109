/** Request ids in the detail of a row that stands for several refused calls. See docs/operating.md, "Refused calls". */

const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{10}([0-9A-HJKMNP-TV-Z]{16})$/

/** Returns the part of a request id that no other has and that such a detail holds; null for another text. */
export const findSharedId = (requestId: string): string | null => REQUEST_ID.exec(requestId)?.[1] ?? null

/** Returns the detail with the ids of all calls; the row itself has the first as its own. */
export function withSharedIds(detail: string | null, ids: readonly string[]): string | null {
  if (ids.length < 2) return detail
  const piece = `"shared_ids":"${ids.flatMap((id) => findSharedId(id) ?? []).join(' ')}"`
  return detail === null ? `{${piece}}` : `${detail.slice(0, -1)},${piece}}`
}
