/** Prints the audit record: a line for each entry, then one for each field that differs. */
import type { listAudit } from '../../../schemas/management/accounts/audit.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { isObject, type Json, makePainter, type Paint, printable } from '../output.ts'

type Entry = AnswerOf<typeof listAudit>['data'][number]
// `before` and `after` are JSON values, as PostgreSQL keeps them.
type Values = Json | undefined

const display = (value: Values): string =>
  value === undefined || value === null
    ? '-'
    : printable(typeof value === 'string' ? value : JSON.stringify(value))

/** Returns nested fields under both names: `file.model`. */
const listFields = (value: Values, prefix = ''): [string, Json][] =>
  value !== undefined && isObject(value)
    ? Object.entries(value).flatMap(([name, part]): [string, Json][] =>
        isObject(part) ? listFields(part, `${prefix}${name}.`) : [[prefix + name, part]],
      )
    : []

function printEntry(entry: Entry, paint: Paint): string {
  const { id, created_at, actor, action, account_id, subject_id, before, after } = entry
  // Created, removed or changed.
  const colour = before === null ? 'green' : after === null ? 'red' : 'yellow'
  const head = [
    display(id),
    paint('dim', created_at),
    display(actor),
    paint(colour, display(action)),
    display(account_id),
    display(subject_id),
  ]
  const [old, now] = [new Map(listFields(before as Json)), new Map(listFields(after as Json))]
  const changes = [...new Set([...old.keys(), ...now.keys()])]
    .map((name) => ({ name, from: display(old.get(name)), to: display(now.get(name)) }))
    .filter(({ from, to }) => from !== to)
    .map(({ name, from, to }) => `    ${paint('dim', `${printable(name)}:`)} ${from} -> ${to}`)
  return [head.join('  '), ...changes].map((line) => `${line}\n`).join('')
}

export const printAudit = (entries: readonly Entry[], isColoured: boolean): string =>
  entries.length === 0
    ? 'none\n'
    : entries.map((entry) => printEntry(entry, makePainter(isColoured))).join('\n')
