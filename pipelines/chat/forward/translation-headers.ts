/**
 * Response headers that describe a translation, or another model. See docs/api-rules.md, "Protocols and translation"
 * and "Attempts".
 */

import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { HeaderList } from '../../../src/http/handler.ts'
import type { EncodedRequest, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import type { PricedCall } from '../../stages/select-model.ts'

/** Returns the header that names the model which serves in place of the requested one; none on most calls. */
export const servedModelHeaders = ({
  requested,
  model,
}: Pick<PricedCall, 'requested' | 'model'>): HeaderList =>
  model === requested ? NO_HEADERS : [['x-served-model', model.id.replace(NOT_PRINTABLE, '?')]]

type LeftOut = Pick<EncodedRequest, 'dropped' | 'changed'>
const NOTHING: LeftOut = { dropped: [] }

const NO_HEADERS: HeaderList = []
const MAX_LIST_CHARS = 2000
const NOT_PRINTABLE = /[^\x20-\x7e]/g

/** Returns a header of as many of the names as fit. */
function listHeader(header: string, names: readonly string[] = []): HeaderList {
  if (names.length === 0) return NO_HEADERS
  let list = ''
  for (const name of names) {
    const longer = list === '' ? name : `${list}; ${name}`
    if (longer.length > MAX_LIST_CHARS) break
    list = longer
  }
  return [[header, list.replace(NOT_PRINTABLE, '?')]]
}

const translationHeader = (from: string, to: string) =>
  ['x-protocol-translation', `${from} to ${to}`] as const

/** Returns the headers that describe the translation of an attempt; none of a native one. */
export const translationHeaders = (
  { isTranslated }: Pick<Route, 'isTranslated'>,
  { from, to }: Pick<ProtocolAdapter, 'from' | 'to'>,
  { dropped, changed }: LeftOut = NOTHING,
): HeaderList =>
  isTranslated
    ? [
        translationHeader(from, to),
        ...listHeader('x-protocol-warning', dropped),
        ...listHeader('x-protocol-changes', changed),
      ]
    : NO_HEADERS

/** Returns the header of a call that was refused before an attempt, where each attempt would have been the same translation. */
export function plannedTranslation(
  protocol: ChatProtocol,
  { routes = [] }: { readonly routes?: readonly Pick<Route, 'isTranslated' | 'protocol'>[] },
): HeaderList {
  const [first] = routes
  const isSame = routes.every(({ protocol, isTranslated }) => isTranslated && protocol === first?.protocol)
  return first === undefined || !isSame ? NO_HEADERS : [translationHeader(protocol, first.protocol)]
}
