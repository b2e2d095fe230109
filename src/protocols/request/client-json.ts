/** A client's JSON against its contract: an error is one sentence that names the field. */
import type { ZodType } from 'zod'
import { Failure } from '../../../schemas/failure.ts'
import { shorten } from '../../core/json/cut.ts'
import { isRawNumber, parseExactJson } from '../../core/json/exact.ts'
import { CHOSEN, findNameFault, type NameSet, TOO_MANY_VALUES } from '../../core/json/names.ts'
import { MAX_JSON_LEVELS, type ScannedFields, scanJson } from '../../core/json/scanner/tape.ts'
import { PLAIN_ISSUES } from '../../core/plain-issues.ts'
import { type Definition, readDefinition, readPlace } from './contract-place.ts'
import { countFault } from './counts.ts'

/** Converts numbers under known names, which are read; numbers elsewhere keep their digits. */
function withPlainSettings(value: unknown, place: NameSet, isKnown: boolean): unknown {
  if (isRawNumber(value)) return isKnown ? Number(value.rawJSON) : value
  if (Array.isArray(value)) return value.map((item) => withPlainSettings(item, place, isKnown))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, inner]) => {
    const inside = place.known.get(name)
    return [name, withPlainSettings(inner, inside ?? CHOSEN, inside !== undefined)] as const
  })
  return Object.fromEntries(fields)
}

const EXCESSES = {
  levels: `it nests deeper than ${MAX_JSON_LEVELS} levels; send it with fewer`,
  values: TOO_MANY_VALUES,
} as const

/**
 * Returns the places of the fields of a body without ambiguous names.
 * @param deepest the level down to which names are compared
 * @throws Failure `invalid_request`
 */
function checkNames(body: Buffer, place: NameSet, deepest = MAX_JSON_LEVELS): ScannedFields | null {
  const { fault, fields } = scanJson(
    body,
    deepest,
    null,
    (tape) => ({ fault: findNameFault(tape, place), fields: tape.listRootFields() }),
    (why) => ({ fault: why === 'other' ? null : { path: [], why: EXCESSES[why] }, fields: null }),
  )
  if (fault !== null) throw invalidField(pathText(fault.path), fault.why)
  return fields
}

/**
 * Parses a body. Numbers are as `parseExactJson` returns them, but plain under the names that `place` knows.
 * @throws Failure `invalid_request`
 */
export function parseCheckedBody(body: Buffer, place: NameSet): unknown {
  try {
    return parseExactJson(body.toString('utf8'), (value) => withPlainSettings(value, place, false))
  } catch (error) {
    throw new Failure('invalid_request', `The request body is not valid JSON: ${(error as Error).message}`)
  }
}

function withinCounts(request: unknown): unknown {
  const fault = countFault(request)
  if (fault !== null) throw invalidField(fault.field, fault.why)
  return request
}

/** A request, and where its fields are in the body. */
export interface ReadBody<T> extends ScannedFields {
  readonly request: T
}

/**
 * Parses a body and checks its names, and the rest against its contract.
 * @param place the names that mean something in it, where those are more than the contract's own
 * @throws Failure `invalid_request` that names the first field that is wrong
 */
export function readJsonFields<T>(schema: ZodType<T>, body: Buffer, place: NameSet): ReadBody<T> {
  assertBody(body)
  const scanned = checkNames(body, place)
  const request = readClientJson(schema, withinCounts(parseCheckedBody(body, place)))
  return { request, ...scanned! }
}

function assertBody(body: Buffer): void {
  if (body.length === 0)
    throw new Failure('invalid_request', 'The request body is empty; a JSON object is expected.')
}

/**
 * The same for a body with long lists, which the caller bounds. It compares only the names of top-level fields.
 * @throws Failure `invalid_request` that names the first field that is wrong
 */
export function readListFields<T>(schema: ZodType<T>, body: Buffer): ReadBody<T> {
  assertBody(body)
  const place = readPlace(schema)
  const scanned = checkNames(body, place, 1)
  return { request: readClientJson(schema, parseCheckedBody(body, place)), ...scanned! }
}

/** Parses and checks a body as `readJsonFields` does. */
export const readJsonBody = <T>(schema: ZodType<T>, body: Buffer, place: NameSet = readPlace(schema)): T =>
  readJsonFields(schema, body, place).request

interface Issue {
  /** As zod names the kind of complaint. */
  readonly code?: string | undefined
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The complaints of each branch, where none of several fits. */
  readonly errors?: readonly (readonly Issue[])[] | undefined
}

/** Returns true for a value of another type than the branch is for. */
const isStrange = ({ code }: Issue): boolean => code === 'invalid_type'

/**
 * Returns the issue of the branch that the client most likely meant: the one that got furthest, else the one whose
 * type matches.
 */
function deepest(issue: Issue): Issue {
  let found = issue
  for (const branch of issue.errors ?? []) {
    if (branch[0] === undefined) continue
    const inner = deepest({ ...branch[0], path: [...issue.path, ...branch[0].path] })
    const further = inner.path.length - found.path.length
    if (found === issue || further > 0 || (further === 0 && isStrange(found) && !isStrange(inner)))
      found = inner
  }
  return found
}

const MAX_NAME_CHARS = 100
const MAX_SHOWN_STEPS = 16
/** A complaint may list all names that a contract does not know. */
const MAX_REASON_CHARS = 500
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/** Returns a name for a message: invisible characters as their numbers, and cut when it is long. */
const printName = (name: string): string =>
  shorten(name, MAX_NAME_CHARS).replace(
    UNSEEN,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Returns a path such as `messages[2].content[0].type`; empty for the whole. */
function pathText(path: readonly PropertyKey[]): string {
  const steps = path.slice(0, MAX_SHOWN_STEPS)
  const text = steps
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${printName(String(step))}`))
    .join('')
  return `${text.replace(/^\./, '')}${path.length > MAX_SHOWN_STEPS ? '…' : ''}`
}

/** Returns a refusal that names the field. */
export function invalidField(path: string, why: string): Failure {
  const what = path === '' ? 'The request body' : `Field '${path}'`
  return new Failure('invalid_request', `${what} is not valid: ${shorten(why, MAX_REASON_CHARS)}`)
}

/** Items of a longer list are checked one by one. A schema reports all that is wrong; one complaint is enough. */
const CHECKED_TOGETHER = 100

const firstIssue = (schema: ZodType<unknown>, value: unknown): Issue | null => {
  const first = schema.safeParse(value, PLAIN_ISSUES).error?.issues[0]
  return first === undefined ? null : deepest(first as Issue)
}

const within = (step: string | number, issue: Issue | null): Issue | null =>
  issue === null ? null : { ...issue, path: [step, ...issue.path] }

/** Returns the alternatives for a list, or for an object: of those that a field tells apart, the one it names. */
function alternativesFor(value: object, { options = [], discriminator }: Definition): readonly ZodType[] {
  if (discriminator !== undefined) {
    const kind = (value as Readonly<Record<string, unknown>>)[discriminator]
    return options.filter((option) => readDefinition(option).shape?.[discriminator]?.safeParse(kind).success)
  }
  const type = Array.isArray(value) ? 'array' : 'object'
  return options.filter((option) => readDefinition(option).type === type)
}

/** Returns whether a list at any depth is long: most requests have none, and need no look at each item. */
const holdsLongList = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ((Array.isArray(value) && value.length > CHECKED_TOGETHER) || Object.values(value).some(holdsLongList))

/** Returns the first complaint about an item of a long list that the schema knows, at any depth. */
function issueInLongLists(schema: ZodType, value: unknown): Issue | null {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return null
  const definition = readDefinition(schema)
  const { shape, element, innerType, in: before, out } = definition
  if (Array.isArray(value) && element !== undefined) {
    const isLong = value.length > CHECKED_TOGETHER
    for (const [index, item] of value.entries()) {
      const issue = issueInLongLists(element, item) ?? (isLong ? firstIssue(element, item) : null)
      if (issue !== null) return within(index, issue)
    }
  } else if (shape !== undefined)
    for (const [name, field] of Object.entries(shape)) {
      const inner = Object.hasOwn(value, name)
        ? (value as Readonly<Record<string, unknown>>)[name]
        : undefined
      const issue = issueInLongLists(field, inner)
      if (issue !== null) return within(name, issue)
    }
  else if (innerType !== undefined) return issueInLongLists(innerType, value)
  else if (before !== undefined && out !== undefined)
    // What a transform makes of the value is checked.
    return readDefinition(before).type === 'transform'
      ? issueInLongLists(out, before.safeParse(value).data)
      : issueInLongLists(before, value)
  else {
    const [only, ...others] = alternativesFor(value, definition)
    if (only !== undefined && others.length === 0) return issueInLongLists(only, value)
  }
  return null
}

/** @throws Failure `invalid_request` with the first complaint of `schema` */
export function readClientJson<T>(schema: ZodType<T>, value: unknown): T {
  const early = holdsLongList(value) ? issueInLongLists(schema, value) : null
  if (early !== null) throw invalidField(pathText(early.path), early.message)
  const parsed = schema.safeParse(value, PLAIN_ISSUES)
  if (parsed.success) return parsed.data
  const issue = deepest(parsed.error.issues[0] as Issue)
  throw invalidField(pathText(issue.path), issue.message)
}
