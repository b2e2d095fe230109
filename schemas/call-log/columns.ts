/**
 * The columns of a call. Everything that lists them is made of this table: settlements and the lines of the journal, the
 * booking in PostgreSQL, the copy to ClickHouse, the rows that customers and operators read, the CSV and the reference.
 * The order is that of rows and CSV, and of what processes of an earlier version send: a new column comes last. `reading.test.ts` compares both databases with it.
 */
import { z } from 'zod'
import { attemptRow, callStatus, unitType } from './row.ts'

/**
 * The kind of a value says how it is kept and printed. `instant` counts epoch milliseconds in settlements and PostgreSQL
 * and is RFC 3339 in rows. `credits` counts 1e-8 credit there, as a string in settlements, and is a decimal string in rows.
 * `attempts` is JSON in both databases. ClickHouse has an empty text where a text or attempts are null.
 */
export type ColumnKind = 'text' | 'count' | 'instant' | 'credits' | 'flag' | 'links' | 'attempts'

interface Column {
  readonly kind: ColumnKind
  /** Its type in `usage_rows`; null: another table has it. */
  readonly postgres: string | null
  /** Its type in `calls`; null: it is not copied. */
  readonly clickhouse: string | null
  /** Whether customers see it in their log; operators see every column. */
  readonly seenBy: 'customer' | 'operator'
  /** As rows have it. */
  readonly shown: z.ZodType
  /** As settlements have it, with its default; absent where it is known only after the booking. */
  readonly settled?: z.ZodType
  /** It is known when the call is let in, and part of its admission. */
  readonly isAdmitted?: true
  /** The heading in CSV, where it is another one than the name; null: not part of CSV. */
  readonly csv?: string | null
}

const TEXT = { kind: 'text', postgres: 'text', clickhouse: 'String' } as const
/** A text of which there are few. */
const WORD = { kind: 'text', postgres: 'text', clickhouse: 'LowCardinality(String)' } as const
const COUNT = { kind: 'count', postgres: 'bigint', clickhouse: 'UInt64' } as const
const INSTANT = { kind: 'instant', postgres: 'bigint', clickhouse: "DateTime64(3, 'UTC')" } as const
const CREDITS = { kind: 'credits', postgres: 'bigint', clickhouse: 'Decimal(18, 8)' } as const
const FLAG = { kind: 'flag', postgres: 'boolean', clickhouse: 'Bool' } as const

const text = z.string()
const orNull = text.nullable()
const count = z.int().min(0)
const units = z.string().regex(/^-?\d+$/)
const usageSource = z.enum(['upstream', 'estimate', 'none'])

/** A text that not every call has. */
const TEXT_OR_NULL = { settled: orNull.default(null), shown: orNull } as const
const TOKENS = { ...COUNT, seenBy: 'customer', settled: count.default(0), shown: z.int() } as const

export const CALL_COLUMNS = {
  // Rises in the order of booking.
  id: { ...COUNT, seenBy: 'customer', shown: z.int().positive() },
  created_at: { ...INSTANT, seenBy: 'customer', settled: z.int(), shown: text },
  submitted_at: { ...INSTANT, seenBy: 'customer', settled: z.int(), isAdmitted: true, shown: text },
  booked_at: { ...INSTANT, clickhouse: null, seenBy: 'operator', shown: text },
  account_id: { ...WORD, seenBy: 'operator', settled: text, isAdmitted: true, shown: text },
  key_id: { ...WORD, seenBy: 'customer', settled: text, isAdmitted: true, shown: text },
  key_name: { ...WORD, postgres: null, seenBy: 'customer', shown: text },
  key_prefix: { ...WORD, postgres: null, seenBy: 'customer', shown: text },
  // Canonical id; empty where the call was refused before its model was known.
  model: { ...WORD, seenBy: 'customer', settled: text, isAdmitted: true, shown: text },
  // Of the client, such as `chat-completions`.
  protocol: { ...WORD, seenBy: 'operator', settled: text, isAdmitted: true, shown: text },
  stream: { ...FLAG, seenBy: 'operator', settled: z.boolean(), isAdmitted: true, shown: z.boolean() },
  status: { ...WORD, seenBy: 'customer', settled: callStatus, shown: callStatus },
  error_code: { ...WORD, seenBy: 'customer', ...TEXT_OR_NULL },
  error_message: { ...TEXT, seenBy: 'customer', ...TEXT_OR_NULL },
  input_tokens: TOKENS,
  output_tokens: TOKENS,
  cached_tokens: TOKENS,
  cache_write_tokens: TOKENS,
  reasoning_tokens: TOKENS,
  server_tool_calls: TOKENS,
  unit_count: { ...TEXT, seenBy: 'customer', ...TEXT_OR_NULL },
  unit_type: {
    ...WORD,
    seenBy: 'customer',
    settled: unitType.nullable().default(null),
    shown: unitType.nullable(),
  },
  cost: {
    ...CREDITS,
    seenBy: 'customer',
    settled: units,
    shown: text.describe('Credits, a decimal string.'),
    csv: 'cost_usd',
  },
  // The pre-charge estimate that admitted the call; 0 for a rejected one.
  estimate: { ...CREDITS, seenBy: 'operator', settled: units, isAdmitted: true, shown: text },
  // What the operator pays, by the cost of its channel; null where that is not known.
  upstream_cost: {
    ...CREDITS,
    clickhouse: 'Nullable(Decimal(18, 8))',
    seenBy: 'operator',
    settled: units.nullable().default(null),
    shown: orNull,
  },
  // Where the counts of tokens come from.
  usage_source: { ...WORD, seenBy: 'operator', settled: usageSource, shown: usageSource },
  latency_ms: { ...COUNT, seenBy: 'customer', settled: count, shown: z.int() },
  // Time to the first byte for the client; null when none was sent.
  ttfb_ms: {
    ...COUNT,
    clickhouse: 'Nullable(UInt64)',
    seenBy: 'operator',
    settled: count.nullable().default(null),
    shown: z.int().nullable(),
  },
  channel_id: { ...WORD, seenBy: 'operator', ...TEXT_OR_NULL },
  request_id: { ...TEXT, seenBy: 'customer', settled: text, isAdmitted: true, shown: text },
  // The task of its charge and its hold; null where nothing outlived its request.
  task_id: { ...TEXT, seenBy: 'customer', ...TEXT_OR_NULL },
  result_urls: {
    kind: 'links',
    postgres: 'text[]',
    clickhouse: 'Array(String)',
    seenBy: 'customer',
    settled: z.array(text).default([]),
    shown: z.array(text),
  },
  // When the links stop opening; null: never.
  result_expires_at: {
    ...INSTANT,
    clickhouse: "Nullable(DateTime64(3, 'UTC'))",
    seenBy: 'customer',
    settled: z.int().nullable().default(null),
    shown: orNull,
  },
  // 0: refused before any upstream was called. null: not determined.
  attempts_count: {
    kind: 'count',
    postgres: 'integer',
    clickhouse: 'Nullable(UInt32)',
    seenBy: 'customer',
    settled: count.nullable().default(null),
    shown: z.int().nullable(),
  },
  // `attempts_count` of them; an only attempt takes as long as the call, and is not stored where it did not fail.
  attempts: {
    kind: 'attempts',
    postgres: 'json',
    clickhouse: 'String',
    seenBy: 'customer',
    settled: z.array(attemptRow).default([]),
    shown: z.array(attemptRow).optional(),
    csv: null,
  },
  // More than 1 where refused calls share the row.
  call_count: {
    kind: 'count',
    postgres: 'integer',
    clickhouse: 'UInt32',
    seenBy: 'customer',
    settled: z.int().min(1).default(1),
    shown: z.int().positive(),
  },
  // The detail of `schemas/call-log/call-detail.ts`, as JSON text, which is not read on the way.
  detail: { ...TEXT, seenBy: 'operator', ...TEXT_OR_NULL },
  // The session that the client names: `src/core/routing/session.ts`.
  session_id: { ...TEXT, seenBy: 'customer', isAdmitted: true, ...TEXT_OR_NULL },
} satisfies Readonly<Record<string, Column>>

type Columns = typeof CALL_COLUMNS
export type ColumnName = keyof Columns
type Having<Part> = {
  [Name in ColumnName]: Columns[Name] extends Part ? Name : never
}[ColumnName]
type SettledName = Having<{ settled: z.ZodType }>
type AdmittedName = Having<{ isAdmitted: true }>
type CustomerName = Having<{ seenBy: 'customer' }>

const COLUMNS: Readonly<Record<ColumnName, Column>> = CALL_COLUMNS
export const findColumn = (name: ColumnName): Column => COLUMNS[name]

const NAMES = Object.keys(CALL_COLUMNS) as ColumnName[]
export const SETTLED_COLUMNS = NAMES.filter((name) => COLUMNS[name].settled !== undefined) as SettledName[]
export const ADMITTED_COLUMNS = NAMES.filter((name) => COLUMNS[name].isAdmitted) as AdmittedName[]
export const CUSTOMER_COLUMNS = NAMES.filter((name) => COLUMNS[name].seenBy === 'customer') as CustomerName[]
/** Those of `usage_rows`. */
export const BOOKED_COLUMNS = NAMES.filter((name) => COLUMNS[name].postgres !== null)
/** Those of `calls`, in the order of the copy: a line begins with the month of its call. */
export const COPIED_COLUMNS = NAMES.filter((name) => COLUMNS[name].clickhouse !== null).sort(
  (a, b) => Number(b === 'created_at') - Number(a === 'created_at'),
)

/** Whether rows may have no value. */
export const isNullable = (name: ColumnName): boolean => COLUMNS[name].shown.safeParse(null).success

type Settled<Name extends SettledName> = Columns[Name] extends { settled: infer Schema } ? Schema : never
const settledShape = Object.fromEntries(SETTLED_COLUMNS.map((name) => [name, COLUMNS[name].settled])) as {
  [Name in SettledName]: Settled<Name>
}

/**
 * One ended call. Written to the journal before anything else, booked exactly once by its `request_id`. An absent field
 * has its default, as most do for most calls. Instants are epoch milliseconds; amounts are strings that count 1e-8 credit.
 */
export const settlement = z.object(settledShape)
export type Settlement = z.infer<typeof settlement>

const admittedShape = Object.fromEntries(ADMITTED_COLUMNS.map((name) => [name, COLUMNS[name].settled])) as {
  [Name in AdmittedName]: Settled<Name>
}

/** A call that was let in. */
export const admission = z.object(admittedShape)
export type Admission = z.infer<typeof admission>

type Shape<Name extends ColumnName> = { [Each in Name]: Columns[Each]['shown'] }
const shownShape = <Name extends ColumnName>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, COLUMNS[name].shown])) as Shape<Name>

/** One row as `GET /v1/logs` gives it. */
export const logRow = z.object({ object: z.literal('log'), ...shownShape(CUSTOMER_COLUMNS) })
export type LogRow = z.infer<typeof logRow>

/** A row with all of its columns, as operators see it. Instants are RFC 3339, amounts decimal credits. */
export type FullRow = Required<LogRow> & { readonly [Name in ColumnName]: z.infer<Columns[Name]['shown']> }
