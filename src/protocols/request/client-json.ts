/** A client's JSON against its contract: an error is one sentence that names the field. */
import type { ZodType } from 'zod'
import { Failure } from '../../../schemas/failure.ts'
import {
  excessOf,
  isRawNumber,
  isTooDeep,
  MAX_JSON_LEVELS,
  mayLoseDigits,
  parseExactJson,
} from '../../core/json/exact.ts'
import { ANYTHING, findNameFault, type NameSet } from '../../core/json/names.ts'
import { placeOf } from './contract-place.ts'
import { countFault } from './counts.ts'

/** Numbers under known names are read, so they are numbers; what the client put elsewhere keeps its digits. */
function withPlainSettings(value: unknown, place: NameSet, isKnown: boolean): unknown {
  if (isRawNumber(value)) return isKnown ? Number(value.rawJSON) : value
  if (Array.isArray(value)) return value.map((item) => withPlainSettings(item, place, isKnown))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, inner]) => {
    const inside = place.known.get(name)
    return [name, withPlainSettings(inner, inside ?? ANYTHING, inside !== undefined)] as const
  })
  return Object.fromEntries(fields)
}

/** Values in one body, at all depths: what takes long to parse and to check is refused before. */
export const MAX_JSON_VALUES = 100_000

const EXCESSES = {
  levels: `it nests deeper than ${MAX_JSON_LEVELS} levels; send it with fewer`,
  values: `it holds more than ${MAX_JSON_VALUES} values; send fewer`,
} as const

/**
 * Parses a body whose names can be read in one way alone. Numbers are as `parseExactJson` gives them, but plain under
 * the names that `place` knows.
 * @throws Failure `invalid_request`
 */
export function parseJsonBody(body: Buffer, place: NameSet): unknown {
  if (body.length === 0)
    throw new Failure('invalid_request', 'The request body is empty; a JSON object is expected.')
  const text = body.toString('utf8')
  const excess = excessOf(text, MAX_JSON_VALUES)
  if (excess !== null) throw invalidField('', EXCESSES[excess])
  const value = parsed(text, place)
  const fault = findNameFault(body, place)
  if (fault !== null) throw invalidField(pathText(fault.path), fault.why)
  return value
}

function parsed(text: string, place: NameSet): unknown {
  try {
    return mayLoseDigits(text) ? withPlainSettings(parseExactJson(text), place, false) : JSON.parse(text)
  } catch (error) {
    throw new Failure('invalid_request', `The request body is not valid JSON: ${(error as Error).message}`)
  }
}

function withinCounts(request: unknown): unknown {
  const fault = countFault(request)
  if (fault !== null) throw invalidField(fault.field, fault.why)
  return request
}

/**
 * Parses a body and checks it against its contract.
 * @param place the names that mean something in it, where those are more than the contract's own
 * @throws Failure `invalid_request` that names the first field that is wrong
 */
export const readJsonBody = <T>(schema: ZodType<T>, body: Buffer, place: NameSet = placeOf(schema)): T =>
  readClientJson(schema, withinCounts(parseJsonBody(body, place)))

/**
 * What `parseJsonBody` gives for a body whose names it, or the scanner, has checked before.
 * @throws Failure `invalid_request` for one that nests too deep
 */
export function parseCheckedBody(body: Buffer, place: NameSet): unknown {
  const text = body.toString('utf8')
  if (isTooDeep(text)) throw invalidField('', EXCESSES.levels)
  return parsed(text, place)
}

export interface Issue {
  /** As zod names the kind of complaint. */
  readonly code?: string | undefined
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The complaints of each branch, where none of several fits. */
  readonly errors?: readonly (readonly Issue[])[] | undefined
}

/** Of another type than the branch is for. */
const isStrange = ({ code }: Issue): boolean => code === 'invalid_type'

/** Of several branches the one that got furthest is the one that was meant; as far, the one whose type it has. */
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
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/** A name as a message shows it: what is not seen as its number, and not all of what is long. */
const shown = (name: string): string =>
  (name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name).replace(
    UNSEEN,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Such as `messages[2].content[0].type`; empty for the whole. */
export function pathText(path: readonly PropertyKey[]): string {
  const steps = path.slice(0, MAX_SHOWN_STEPS)
  const text = steps
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${shown(String(step))}`))
    .join('')
  return `${text.replace(/^\./, '')}${path.length > MAX_SHOWN_STEPS ? '…' : ''}`
}

/** A refusal that names the field. */
export function invalidField(path: string, why: string): Failure {
  const what = path === '' ? 'The request body' : `Field '${path}'`
  return new Failure('invalid_request', `${what} is not valid: ${why}`)
}

/** Items of a list that are checked together. A schema looks for all that is wrong; one complaint is enough. */
const CHECKED_TOGETHER = 100

/** Returns the first complaint about an item of a long list; null where a check of the whole has to tell. */
function issueInList(schema: ZodType<unknown>, value: unknown): Issue | null {
  if (typeof value !== 'object' || value === null) return null
  for (const [name, list] of Object.entries(value)) {
    if (!Array.isArray(list) || list.length <= CHECKED_TOGETHER) continue
    for (let from = 0; from < list.length; from += CHECKED_TOGETHER) {
      // Without the other lists: with them, each would be checked once for each piece of this one.
      const parsed = schema.safeParse({ [name]: list.slice(from, from + CHECKED_TOGETHER) })
      const issue = parsed.error?.issues.find(({ path: [at, index] }) => at === name && index !== undefined)
      if (issue === undefined) continue
      const [, index, ...inside] = issue.path
      return { ...(issue as Issue), path: [name, Number(index) + from, ...inside] }
    }
  }
  return null
}

/** @throws Failure `invalid_request` with the first complaint of `schema` */
export function readClientJson<T>(schema: ZodType<T>, value: unknown): T {
  const early = issueInList(schema, value)
  if (early !== null) {
    const issue = deepest(early)
    throw invalidField(pathText(issue.path), issue.message)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  if (first === undefined) throw invalidField('', 'it does not fit the contract')
  const issue = deepest(first as Issue)
  throw invalidField(pathText(issue.path), issue.message)
}
