/** Sends a call of the playground and reads its answer as it arrives. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ROUTES } from '../../../../schemas/routes.ts'
import { readError } from '../../api/client.ts'
import type { Chunk } from './answer.ts'

export const CHAT_PATH = ROUTES.createChatCompletion[1]

interface Sent {
  /** The request id, which finds the call in the log. */
  readonly requestId: string | null
  readonly chunks: AsyncIterable<Chunk>
}

async function* readStream(body: ReadableStream<BufferSource>): AsyncGenerator<Chunk> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  const reader = events.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read())
      if (next.value.data !== '[DONE]') yield JSON.parse(next.value.data) as Chunk
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

async function* readWhole(response: Response): AsyncGenerator<Chunk> {
  yield (await response.json()) as Chunk
}

/** Sends the body and returns the answer as it arrives. @throws ApiError when the call is refused */
export async function send(key: string, body: object, signal: AbortSignal): Promise<Sent> {
  const response = await fetch(CHAT_PATH, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  })
  const requestId = response.headers.get('x-gateway-trace')
  if (!response.ok) throw await readError(response)
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  return { requestId, chunks: isStream && response.body ? readStream(response.body) : readWhole(response) }
}
