/** The recorded streams of the messages protocol, and how a test runs one through the gateway in pieces. */
import { readdirSync, readFileSync } from 'node:fs'
import { isLegacy } from '../../../../src/protocols/chat-completions/legacy-functions.ts'
import { completionsClient } from '../../../../src/protocols/chat-completions/translation/sides.ts'
import type { AnswerStream, ChatCall } from '../../../../src/protocols/dialect.ts'
import { toFields } from '../../../../src/protocols/loose.ts'
import { messagesUpstream } from '../../../../src/protocols/messages/translation/sides.ts'
import { NO_LINKS } from '../../../../src/protocols/request/linked-parts.ts'
import { translation } from '../../../../src/protocols/translate/translation.ts'
import { outputInPieces } from '../every-split.ts'

const FIXTURES = new URL('../../../fixtures/messages/', import.meta.url)

const readAll = (folder: URL): ReadonlyMap<string, Buffer> =>
  new Map(
    readdirSync(folder)
      .filter((file) => file.endsWith('.sse'))
      .map((file) => [file.replace('.sse', ''), readFileSync(new URL(file, folder))]),
  )

export const MESSAGES_STREAMS = readAll(FIXTURES)
/** What a chat-completions client gets of each. */
export const GOLDEN = readAll(new URL('golden/', FIXTURES))

export const CREATED_SECONDS = 1_700_000_000
export const MODEL = 'sonata-large'
export const TO_MESSAGES = translation(
  ['chat-completions', completionsClient],
  ['messages', messagesUpstream],
  () => CREATED_SECONDS * 1000,
)

/** A chat-completions call as the dialect reads it. */
export const chatCall = (body: object = {}, more: Partial<ChatCall> = {}): ChatCall => ({
  model: MODEL,
  stream: true,
  outputLimit: null,
  choices: 1,
  conversationBytes: 0,
  promptBytes: 0,
  links: NO_LINKS,
  settings: '',
  builtInTools: [],
  toolCallLimit: null,
  source: {
    body: Buffer.from(JSON.stringify(body)),
    isLegacy: isLegacy(toFields(body).functions, toFields(body).tools),
    request: { stream_options: { include_usage: true } },
  },
  ...more,
})

export const translatedStream = (): AnswerStream => TO_MESSAGES.openStream(chatCall())

/** What comes out when `stream` arrives in the pieces that end at `cuts`. The buffer is one, as the client's is. */
export function runInPieces(answer: AnswerStream, stream: Buffer, cuts: readonly number[]) {
  const output = outputInPieces(answer, stream, cuts)
  const { usage, characters, charactersSinceUsage, isUsageWhole, hasBegun, isComplete, firstError } = answer
  const counts = { usage, characters, charactersSinceUsage, isUsageWhole, suspect: answer.suspect }
  const said = { ...counts, hasBegun, isComplete, firstError }
  return { output, said }
}
