/**
 * Response headers that describe a translation, or another model. See docs/api-rules.md, "Protocols and translation"
 * and "Attempts".
 */

import type { Route } from '../../../src/core/routing/catalog.ts'
import type { HeaderList } from '../../../src/http/handler.ts'
import type { ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import type { PricedCall } from '../../stages/select-model.ts'

/** Returns the header that names the model which serves in place of the requested one; none on most calls. */
const servedModelHeaders = ({ requested, model }: Pick<PricedCall, 'requested' | 'model'>): HeaderList =>
  model === requested ? NO_HEADERS : [['x-served-model', model.id.replace(NOT_PRINTABLE, '?')]]

const NO_HEADERS: HeaderList = []
const MAX_WARNING_CHARS = 2000
const NOT_PRINTABLE = /[^\x20-\x7e]/g

function translationHeaders({ from, to }: ProtocolAdapter, dropped: readonly string[]): HeaderList {
  const translation = ['x-protocol-translation', `${from} to ${to}`] as const
  if (dropped.length === 0) return [translation]
  const warning = dropped.join('; ').replace(NOT_PRINTABLE, '?').slice(0, MAX_WARNING_CHARS)
  return [translation, ['x-protocol-warning', warning]]
}

/** Returns the headers that an answer gets besides those of its upstream. */
export function addedHeaders(
  call: Pick<PricedCall, 'requested' | 'model'>,
  route: Route,
  adapter: ProtocolAdapter,
  dropped: readonly string[],
): HeaderList {
  const served = servedModelHeaders(call)
  return route.isTranslated ? [...served, ...translationHeaders(adapter, dropped)] : served
}
