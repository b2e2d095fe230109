/** Prints answers for people. */
import type { listAudit } from '../../../schemas/management/accounts/audit.ts'
import {
  margins,
  type showInstallationUsage,
  type UsageGroup,
} from '../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { printCsvRecord } from '../../core/call-log/csv-records.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  makePainter,
  type Paint,
  printable,
  printTable,
} from '../output.ts'
import { NULL_WORDS } from './fields.ts'

/** Says until when the former secret of a rotated key works. */
function describeFormerSecret({ key_prefix, successor_used_at, ends_at }: JsonObject): string {
  if (Date.parse(String(ends_at)) <= Date.now()) return `${key_prefix}… ended at ${ends_at}`
  const until = `${key_prefix}… works until ${ends_at}`
  return successor_used_at === null ? `${until} at most: the new secret has not been used yet` : until
}

/** By the name of the field. */
const WORDS: Readonly<Record<string, (value: Json) => Json>> = {
  // The interface's word is points.
  currency: (value) => (value === 'points' ? 'credits' : value),
  former_secret: (value) => (isObject(value) ? describeFormerSecret(value) : value),
  persona: (value) => (String(value).length > 100 ? `${String(value).slice(0, 100)}…` : value),
  draft: (value) => (isObject(value) ? 'yes' : value),
  dry_run: (value) =>
    value ? 'yes: nothing was booked; add --book to book them' : 'no: now run logs rebuild',
  repeated: (value) => (value === true ? 'the reference was booked earlier; nothing was changed' : value),
}

/** Returns the value of a field in words; `nulls` come before the usual words for null. */
export const inWords = (field: string, value: Json, nulls: Readonly<Record<string, string>> = {}): Json =>
  value === null ? (nulls[field] ?? NULL_WORDS[field] ?? null) : (WORDS[field]?.(value) ?? value)

/** Columns of `tollgate usage` before the sums. */
const GROUP_FIELDS = {
  account: ['account_id', 'name'],
  model: ['model'],
  day: ['day'],
  key: ['key_id', 'name', 'account_id'],
  channel: ['channel_id'],
} as const satisfies Record<UsageGroup, readonly string[]>

export function printUsage(usage: AnswerOf<typeof showInstallationUsage>, format: 'text' | 'csv'): string {
  const { period_from, period_to, by, rows, total, lost_submits: lost } = usage
  // Margins are shown where the cost of any call is known.
  const sums = Object.keys(total).filter((name) => total.upstream_cost !== null || !(name in margins))
  const fields = [...GROUP_FIELDS[by], ...sums]
  if (format === 'csv') {
    const records = (rows as readonly JsonObject[]).map((row) => fields.map((field) => row[field] ?? null))
    return [fields, ...(records as (string | number | null)[][])].map(printCsvRecord).join('')
  }
  const table = printTable([...rows, { [fields[0]!]: 'total', ...total }], fields)
  const note =
    lost.submits === 0
      ? ''
      : `\nNot included: ${lost.submits} lost submits, whose known cost is ${lost.upstream_cost}. See: tollgate task lost --all\n`
  return `${period_from} to ${period_to}\n\n${table}${note}`
}

type Entry = AnswerOf<typeof listAudit>['data'][number]

/** Prints the audit record: a line for each entry, then one for each field that differs. */
export const printAudit = (entries: readonly Entry[], isColoured: boolean): string =>
  entries.length === 0
    ? 'none\n'
    : entries.map((entry) => printEntry(entry, makePainter(isColoured))).join('\n')

function printEntry(entry: Entry, paint: Paint): string {
  const { id, created_at, actor, action, account_id, subject_id, before, after } = entry
  // Created, removed or changed.
  const colour = before === null ? 'green' : after === null ? 'red' : 'yellow'
  const head = [
    String(id),
    paint('dim', created_at),
    printValue(actor),
    paint(colour, printValue(action)),
    printValue(account_id),
    printValue(subject_id),
  ]
  const [old, now] = [new Map(listFields(before as Json)), new Map(listFields(after as Json))]
  const changes = [...new Set([...old.keys(), ...now.keys()])]
    .map((name) => ({ name, from: printValue(old.get(name)), to: printValue(now.get(name)) }))
    .filter(({ from, to }) => from !== to)
    .map(({ name, from, to }) => `    ${paint('dim', `${printable(name)}:`)} ${from} -> ${to}`)
  return [head.join('  '), ...changes].map((line) => `${line}\n`).join('')
}

const printValue = (value: Json = null): string =>
  value === null ? '-' : printable(typeof value === 'string' ? value : JSON.stringify(value))

/** Returns nested fields under both names: `file.model`. */
const listFields = (value: Json, prefix = ''): [string, Json][] =>
  isObject(value)
    ? Object.entries(value).flatMap(([name, part]): [string, Json][] =>
        isObject(part) ? listFields(part, `${prefix}${name}.`) : [[prefix + name, part]],
      )
    : []
