/** A whole JSON answer, as one reply event. */
import type { HeaderList, Reply } from '../../src/http/handler.ts'

type FullReply = Extract<Reply, { type: 'full' }>

const JSON_HEADERS: HeaderList = [['content-type', 'application/json; charset=utf-8']]

/** Returns a reply. `body` is JSON already. */
export const jsonTextReply = (body: string): FullReply => ({
  type: 'full',
  status: 200,
  headers: JSON_HEADERS,
  body,
})

export const jsonReply = (body: unknown): FullReply => jsonTextReply(JSON.stringify(body))
