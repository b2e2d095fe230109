/**
 * Response headers that describe a translation, or another model. See docs/api-rules.md, "Protocols and translation"
 * and "Attempts".
 */

import type { CallProtocol, ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Model, Route } from '../../../src/core/routing/catalog.ts'
import type { HeaderList } from '../../../src/http/handler.ts'
import type { EncodedRequest, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import { listUnpricedLifetimes } from '../../../src/protocols/usage/cache-writes.ts'

/** The model that the client names, and the one that serves. */
interface ServedCall {
  readonly requested: Model
  readonly model: Model
}

type Encoded = Pick<EncodedRequest, 'body' | 'dropped' | 'changed'>

const NO_HEADERS: HeaderList = []
const MAX_LIST_CHARS = 2000
const NOT_PRINTABLE = /[^\x20-\x7e]/g

/** Returns a header of as many of the names as fit. */
function listHeader(header: string, names: readonly string[]): HeaderList {
  if (names.length === 0) return NO_HEADERS
  let list = ''
  for (const name of names) {
    const longer = list === '' ? name : `${list}; ${name}`
    if (longer.length > MAX_LIST_CHARS) break
    list = longer
  }
  return [[header, list.replace(NOT_PRINTABLE, '?')]]
}

const makeTranslationHeader = (from: string, to: string) =>
  ['x-protocol-translation', `${from} to ${to}`] as const

/**
 * Returns the headers that describe the translation of an attempt; of a native one, what was left out. Both name the
 * lifetimes of cache marks that have no price.
 */
export function makeTranslationHeaders(
  { isTranslated }: Pick<Route, 'isTranslated'>,
  { from, to }: Pick<ProtocolAdapter, 'from' | 'to'>,
  { writesCache }: Model,
  encoded?: Encoded,
): HeaderList {
  const translation: HeaderList = isTranslated ? [makeTranslationHeader(from, to)] : NO_HEADERS
  if (encoded === undefined) return translation
  const { body, dropped, changed = [] } = encoded
  if (!writesCache && dropped.length === 0 && changed.length === 0) return translation
  const named = writesCache ? [...dropped, ...listUnpricedLifetimes(body)] : dropped
  return [
    ...translation,
    ...listHeader('x-protocol-warning', named),
    ...listHeader('x-protocol-changes', changed),
  ]
}

interface PlannedRoute extends Pick<Route, 'isTranslated' | 'protocol'> {
  readonly channel: Pick<ChannelEntry, 'priority'>
}

/** Returns the header of a call that was refused before an attempt, where any attempt would have been translated: of the first. */
export function planTranslationHeaders(
  protocol: CallProtocol,
  { routes = [] }: { readonly routes?: readonly PlannedRoute[] },
): HeaderList {
  const [first] = routes.toSorted((a, b) => a.channel.priority - b.channel.priority)
  const isTranslated = routes.every((route) => route.isTranslated)
  return first === undefined || !isTranslated ? NO_HEADERS : [makeTranslationHeader(protocol, first.protocol)]
}

/** Returns the headers of an answer: its own, and those that name its model and its translation. */
export function joinAnswerHeaders(
  own: HeaderList,
  { requested, model }: ServedCall,
  translation: HeaderList,
): HeaderList {
  if (model !== requested)
    return [...own, ['x-served-model', model.id.replace(NOT_PRINTABLE, '?')], ...translation]
  return translation.length === 0 ? own : [...own, ...translation]
}
