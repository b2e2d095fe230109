/** The beginning of every settlement. */
import {
  type Admission,
  findColumn,
  SETTLED_COLUMNS,
  type Settlement,
} from '../../../schemas/call-log/columns.ts'

/** The columns that have a default, and their defaults. */
export const DEFAULTS: Readonly<Partial<Settlement>> = Object.fromEntries(
  SETTLED_COLUMNS.flatMap((name) => {
    const { success, data } = findColumn(name).settled!.safeParse(undefined)
    return success ? [[name, data]] : []
  }),
)

// With every column from the start: an object that gets many by their names becomes a slow dictionary.
const NOTHING = {
  ...Object.fromEntries(SETTLED_COLUMNS.map((name) => [name, DEFAULTS[name] ?? null])),
  status: 'interrupted',
  cost: '0',
  usage_source: 'none',
} as Settlement

/**
 * Begins the settlement of a call: until something better is known it was interrupted and costs nothing.
 * @param now the end of the call, epoch milliseconds
 */
export const emptySettlement = (call: Admission, now: number): Settlement => ({
  ...NOTHING,
  ...call,
  created_at: now,
  latency_ms: Math.max(0, now - call.submitted_at),
})
