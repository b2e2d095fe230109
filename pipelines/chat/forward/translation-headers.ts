/** Response headers that describe a translation. See docs/api-rules.md, "Protocols and translation". */
import type { HeaderList } from '../../../src/http/handler.ts'
import type { ProtocolAdapter } from '../../../src/protocols/dialect.ts'

const MAX_WARNING_CHARS = 2000
const NOT_PRINTABLE = /[^\x20-\x7e]/g

export function translationHeaders({ from, to }: ProtocolAdapter, dropped: readonly string[]): HeaderList {
  const translation = ['x-protocol-translation', `${from} to ${to}`] as const
  if (dropped.length === 0) return [translation]
  const warning = dropped.join('; ').replace(NOT_PRINTABLE, '?').slice(0, MAX_WARNING_CHARS)
  return [translation, ['x-protocol-warning', warning]]
}
