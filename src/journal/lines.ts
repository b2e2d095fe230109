/** The lines of the journal, one JSON object each. */
import {
  ADMITTED_COLUMNS,
  type Admission,
  type ColumnKind,
  findColumn,
  SETTLED_COLUMNS,
  type Settlement,
} from '../../schemas/call-log/columns.ts'
import { DEFAULTS, emptySettlement } from '../core/call-log/settlement.ts'
import { cutText } from '../core/json/cut.ts'

/** A longer settlement is shortened in its texts, so that many of them fit a message. */
export const SETTLEMENT_MAX_CHARS = 64 * 1024
const SHORTENED_TEXT_CHARS = 500
const SHORTENED_ATTEMPTS = 8

const NAMES = ['account_id', 'key_id', 'model', 'protocol'] as const
const APART = new Set<string>(['request_id', ...NAMES])

/** Prints a text that needs no escaping, as JavaScript. */
const PLAIN_TEXT = `'"' + value + '"'`
/** How the value of a column is printed, as JavaScript. */
const PRINTED: Readonly<Record<ColumnKind, string>> = {
  text: 'quote(value)',
  credits: PLAIN_TEXT,
  count: 'value',
  instant: 'value',
  flag: 'value',
  links: 'JSON.stringify(value)',
  attempts: 'JSON.stringify(value)',
}

type PrintColumns<Name extends keyof Settlement> = (call: Pick<Settlement, Name>) => string

/**
 * Compiles a function that returns `,"name":value` for each column whose value is not its default. It reads each by its
 * own statement: a loop over the names takes a third longer, for every call.
 */
function compilePrinting<Name extends keyof Settlement>(names: readonly Name[]): PrintColumns<Name> {
  const statements = names.map((name) => {
    const usual = DEFAULTS[name]
    const isUnusual = Array.isArray(usual) ? 'value.length > 0' : `value !== ${JSON.stringify(usual)}`
    const { kind, settled } = findColumn(name)
    const printed = settled!.def.type === 'enum' ? PLAIN_TEXT : PRINTED[kind]
    return `value = call.${name}; if (${isUnusual}) text += ',"${name}":' + ${printed}`
  })
  const source = `return (call) => { let text = '', value; ${statements.join('\n')}; return text }`
  return new Function('quote', source)(quote)
}

export const printAdmissionLine = (identity: string): string => `${identity}}\n`

/**
 * Returns the common beginning of one call's lines: it is printed once for both. A JSON object without its closing
 * brace.
 */
export const printIdentity = (call: Admission): string =>
  `{"request_id":${quote(call.request_id)}${namesText(call)}${printRestOfAdmission(call)}`

const ESTIMATE = '"estimate":"'

/** Returns the estimate of an `printIdentity`. */
export function estimateIn(identity: string): bigint {
  // In a text the quotes have escapes, so that it cannot look so.
  const at = identity.indexOf(ESTIMATE) + ESTIMATE.length
  return BigInt(identity.slice(at, identity.indexOf('"', at)))
}

type Names = Pick<Admission, (typeof NAMES)[number]>

/** The most keys whose names are cached; then the cache is cleared. */
const CACHED_KEYS = 4096
const printedNames = new Map<string, Names & { readonly text: string }>()

/**
 * Returns the names of a call. A key's calls mostly have the same names: printed once, and joined, they are copied in
 * one piece afterwards.
 */
function namesText({ account_id, key_id, model, protocol }: Names): string {
  const known = printedNames.get(key_id)
  if (known?.model === model && known.account_id === account_id && known.protocol === protocol)
    return known.text
  const text = printNames({ account_id, key_id, model, protocol })
  if (printedNames.size >= CACHED_KEYS) printedNames.clear()
  printedNames.set(key_id, { account_id, key_id, model, protocol, text })
  return text
}

/** What is printed of an admission, and the model that it names. */
export interface PrintedAdmission {
  readonly identity: string
  readonly model: string
}

/**
 * Prints a settlement.
 * @param admitted the call's, where it has been printed: another model may have served it since
 */
export function printSettlementLine(
  settlement: Settlement,
  admitted: PrintedAdmission | null = null,
): string {
  const identity = admitted?.model === settlement.model ? admitted.identity : printIdentity(settlement)
  const line = printSettlement(settlement, identity)
  return line.length <= SETTLEMENT_MAX_CHARS ? line : printSettlement(shorten(settlement), identity)
}

/** Prints a settlement without its defaults: half the bytes, which travel three times, and half the time. */
const printSettlement = (settlement: Settlement, identity: string): string =>
  `${identity}${printEnd(settlement)}}\n`

const PLAIN = /^[\w.:@/-]*$/

/**
 * Quotes a text. Most strings of a settlement are ids: they need no escaping, and that check is cheaper than escaping.
 */
const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

const printNames = compilePrinting(NAMES)
const printRestOfAdmission = compilePrinting(ADMITTED_COLUMNS.filter((name) => !APART.has(name)))
const printEnd = compilePrinting(SETTLED_COLUMNS.filter((name) => !findColumn(name).isAdmitted))

const shortenText = (text: string | null): string | null =>
  text === null ? null : cutText(text, SHORTENED_TEXT_CHARS)

function shorten(settlement: Settlement): Settlement {
  return {
    ...settlement,
    error_message: shortenText(settlement.error_message),
    attempts: settlement.attempts.slice(0, SHORTENED_ATTEMPTS).map((attempt) => ({
      ...attempt,
      error_code: shortenText(attempt.error_code),
      error_message: shortenText(attempt.error_message),
    })),
  }
}

export const INTERRUPTED_MESSAGE = 'The gateway stopped during the call.'

/**
 * Returns the settlement of a call whose process died before its end: no charge. See docs/architecture.md, "A
 * settlement".
 */
export const makeInterruptedSettlement = (call: Admission, now: number): Settlement => ({
  ...emptySettlement(call, now),
  error_message: INTERRUPTED_MESSAGE,
})
