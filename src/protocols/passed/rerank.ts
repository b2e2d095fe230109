/** `POST /v1/rerank`: reading a client's request, and what its answer used. */
import { rerankRequest } from '../../../schemas/chat/passed.ts'
import { printNumber } from '../../core/call-log/detail-text.ts'
import { NO_USAGE } from '../../core/pricing/usage.ts'
import { NOTHING_METERED } from '../answer/reported-usage.ts'
import type { ChatCall, ClientRequest, Dialect, ProtocolAdapter } from '../dialect.ts'
import { toFields, toText } from '../loose.ts'
import { readListFields } from '../request/client-json.ts'
import { withoutForeignFields } from '../request/foreign-fields.ts'
import { NO_LINKS } from '../request/linked-parts.ts'
import { bytesOfField } from '../request/prompt-fields.ts'
import { meterPassed, passedBody, passedCall, passJson, readCount, readPassedAnswer } from './passed.ts'

const MOST_MS = 30_000
/** Upstreams that bill searches count one for this many documents. */
const DOCUMENTS_PER_SEARCH = 100
/** They count a document with its query once for every 500 tokens. A token has at least one byte. */
const LEAST_BYTES_PER_DOCUMENT = 500

const request = withoutForeignFields('chat-completions', rerankRequest)

const countSearches = (documents: number): number => Math.ceil(documents / DOCUMENTS_PER_SEARCH)

const LINK = /^\s*[a-z][a-z0-9+.-]*:/i

/** Returns the links of a document that the upstream would fetch: pictures, not what a text names. */
const listUrls = (document: unknown): string[] =>
  Object.entries(typeof document === 'string' ? {} : toFields(document))
    .filter(([name]) => name !== 'text')
    .map(([, value]) => toText(value))
    .filter((value) => LINK.test(value))

function read({ body }: ClientRequest): ChatCall {
  const { request: asked, fields } = readListFields(request, body)
  const { model, documents, top_n: wanted } = asked
  const count = documents.length
  const bytes = bytesOfField(body, fields.get('documents'))
  const queryBytes = bytesOfField(body, fields.get('query'))
  // Some upstreams refuse to return more results than there are documents.
  const isTooMany = wanted != null && wanted > count
  const top = isTooMany ? [{ ...fields.get('top_n')!, text: String(count) }] : []
  return {
    ...passedCall,
    ...{ model, mostMs: MOST_MS, conversationBytes: bytes, promptBytes: bytes },
    links: { ...NO_LINKS, urls: documents.flatMap(listUrls) },
    units: {
      type: 'search',
      count: countSearches(count),
      most: countSearches(count + Math.ceil((bytes + count * queryBytes) / LEAST_BYTES_PER_DOCUMENT)),
    },
    settings: printNumber('messages', count),
    source: passedBody(body, fields, top),
  }
}

export const rerank: Dialect<'rerank'> = { protocol: 'rerank', read }

/** Returns the searches that an answer reports; null without a report. */
function readSearches(meta: unknown): number | null {
  const count = readCount(toFields(toFields(meta).billed_units).search_units)
  return count === null ? null : Math.ceil(count)
}

export const rerankAdapter: ProtocolAdapter = passJson('rerank', (_call, body) => {
  const answer = readPassedAnswer(body)
  if (answer === null) return { body, metered: NOTHING_METERED, isAnswer: false }
  const meta = answer.read('meta')
  const searches = readSearches(meta)
  const tokens = meterPassed(answer, answer.read('usage') ?? toFields(meta).tokens)
  const metered = {
    ...tokens,
    usage: tokens.usage ?? (searches === null ? null : NO_USAGE),
    ...(meta != null && { reported: meta }),
    isUsageWhole: searches !== null,
    ...(searches !== null && { units: searches }),
  }
  return { body, metered, isAnswer: answer.hasItems('results') }
})
