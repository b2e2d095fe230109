/** The beginning of every settlement. */
import {
  ADMITTED_COLUMNS,
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

const ADMITTED = ADMITTED_COLUMNS.map((name) => `${name}: call.${name}`).join()
/** Compiled: to spread a second object takes as long as all else of a settlement, for every call. */
const copyAdmission: (call: Admission) => Settlement = new Function(
  'NOTHING',
  `return (call) => ({ ...NOTHING, ${ADMITTED} })`,
)(NOTHING)

/**
 * Begins the settlement of a call: until something better is known it was interrupted and costs nothing.
 * @param now the end of the call, epoch milliseconds
 */
export function emptySettlement(call: Admission, now: number): Settlement {
  const settlement = copyAdmission(call)
  settlement.created_at = now
  settlement.latency_ms = Math.max(0, now - call.submitted_at)
  return settlement
}
