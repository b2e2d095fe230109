/**
 * Tests values on the tape against a contract. The tests are made of the zod schema itself, so that no rule is written
 * twice; a value that passes is valid under the schema. One that does not may be valid all the same: the schema decides.
 */
import type { ZodType } from 'zod'
import { FieldFinder, type NodeTest, type Tape, Words } from '../../core/json/scanner/tape.ts'
import { readDefinition } from './contract-place.ts'

const never: NodeTest = () => false

interface Check {
  readonly _zod: {
    readonly def: {
      readonly check: string
      readonly minimum?: number
      readonly value?: number
      readonly inclusive?: boolean
    }
    readonly check: (payload: { value: unknown; issues: unknown[] }) => unknown
  }
}

const readChecks = (schema: ZodType): readonly Check[] => (schema.def.checks ?? []) as unknown as Check[]

/** Returns the length that a string or a list must have; null where it has to meet more than that. */
function findMinimum(schema: ZodType): number | null {
  let minimum = 0
  for (const { _zod } of readChecks(schema)) {
    if (_zod.def.check !== 'min_length') return null
    minimum = Math.max(minimum, _zod.def.minimum!)
  }
  return minimum
}

/** A longer string means nothing to a refinement. */
const MAX_WORD_BYTES = 32

/** Returns what a refinement of an object reads of one of its fields: its type, and the value of a short one. */
function standIn(tape: Tape, node: number): unknown {
  if (tape.isObject(node)) return {}
  if (tape.isList(node)) return []
  const isLong = tape.isText(node) && tape.readEnd(node) - tape.readStart(node) > MAX_WORD_BYTES
  return isLong ? 'a long text' : tape.readValue(node)
}

/**
 * The fields of an object, and whether it is as its schema has it. `found` of the tape then has the fields, those of
 * `others` included.
 */
export class ObjectContract<Name extends string> {
  readonly place: Readonly<Record<Name, number>>
  readonly #finder: FieldFinder<Name>
  readonly #places: readonly number[]
  readonly #tests: readonly NodeTest[]
  readonly #refinements: readonly Check[]
  readonly #shape: readonly Name[]
  readonly #isStrict: boolean

  /**
   * @param others names of further fields to find
   * @param items tests for the items of lists, by the names of their fields
   */
  constructor(
    schema: ZodType,
    others: readonly Name[] = [],
    items: Readonly<Partial<Record<string, NodeTest>>> = {},
  ) {
    const { shape = {}, catchall } = readDefinition(schema)
    const names = Object.keys(shape) as Name[]
    this.#finder = new FieldFinder([...names, ...others])
    this.place = this.#finder.place
    this.#shape = names
    this.#places = names.map((name) => this.place[name])
    this.#tests = names.map((name) => contractTest(shape[name]!, items[name]))
    this.#refinements = readChecks(schema)
    this.#isStrict = catchall !== undefined && readDefinition(catchall).type === 'never'
  }

  readonly accepts: NodeTest = (tape, node) => {
    if (!tape.find(this.#finder, node)) return false
    if (this.#isStrict && this.#hasOthers(tape, node)) return false
    const tests = this.#tests
    const places = this.#places
    for (let i = 0; i < tests.length; i++) if (!tests[i]!(tape, tape.found(places[i]!))) return false
    return this.#refinements.length === 0 || this.#isRefined(tape)
  }

  #hasOthers(tape: Tape, node: number): boolean {
    const end = tape.nodeAfter(node)
    let count = 0
    for (let name = node + 1; name < end; name = tape.nodeAfter(name + 1)) count++
    for (const name of this.#shape) if (tape.found(this.place[name]) !== 0) count--
    return count !== 0
  }

  #isRefined(tape: Tape): boolean {
    const value: Partial<Record<Name, unknown>> = {}
    for (const name of this.#shape) {
      const node = tape.found(this.place[name])
      if (node !== 0) value[name] = standIn(tape, node)
    }
    const payload = { value, issues: [] }
    for (const { _zod } of this.#refinements) _zod.check(payload)
    return payload.issues.length === 0
  }
}

/** Returns whether a transform leaves a list as it is: that of a list or one item does. */
function keepsLists(schema: ZodType): boolean {
  const list: unknown[] = []
  return schema.safeParse(list).data === list
}

/**
 * Returns the test of a schema. A schema of another kind than these accepts nothing.
 * @param item the test for the items of its list, where it is one
 */
export function contractTest(schema: ZodType, item?: NodeTest): NodeTest {
  const { type, element, innerType, in: before, out, options = [] } = readDefinition(schema)
  switch (type) {
    case 'optional': {
      if (readDefinition(innerType!).type === 'nullable') {
        const test = contractTest(readDefinition(innerType!).innerType!, item)
        return (tape, node) => tape.isMissing(node) || test(tape, node)
      }
      const test = contractTest(innerType!, item)
      return (tape, node) => node === 0 || test(tape, node)
    }
    case 'nullable': {
      const test = contractTest(innerType!, item)
      return (tape, node) => isNull(tape, node) || test(tape, node)
    }
    case 'null':
      return isNull
    case 'union': {
      const tests = options.map((option) => contractTest(option, item))
      return (tape, node) => {
        for (let i = 0; i < tests.length; i++) if (tests[i]!(tape, node)) return true
        return false
      }
    }
    case 'pipe':
      return keepsLists(before!) ? listsOnly(contractTest(out!, item)) : never
    case 'object':
      return new ObjectContract(schema).accepts
    case 'array':
      return arrayTest(schema, item ?? contractTest(element!))
    case 'string':
      return stringTest(schema)
    case 'enum':
    case 'literal':
      return wordTest(schema)
    case 'number':
    case 'boolean': {
      const accepts = scalarTest(schema)
      return (tape, node) => node !== 0 && !holdsMore(tape, node) && accepts(tape.readValue(node))
    }
    default:
      return never
  }
}

/** Returns the test of a number or a boolean. A usual schema, a type and bounds, is tested without the schema's runtime. */
function scalarTest(schema: ZodType): (value: unknown) => boolean {
  const { type, format } = schema.def as { type: string; format?: string }
  let least = -Number.MAX_VALUE
  let most = Number.MAX_VALUE
  for (const { _zod } of readChecks(schema)) {
    const { check, inclusive, value } = _zod.def
    if (check === 'greater_than' && inclusive) least = Math.max(least, value!)
    else if (check === 'less_than' && inclusive) most = Math.min(most, value!)
    else return (tested) => isValid(schema, tested)
  }
  if (type === 'boolean') return (tested) => typeof tested === 'boolean'
  const isInBounds = (tested: unknown) => typeof tested === 'number' && tested >= least && tested <= most
  if (format === undefined) return isInBounds
  if (format === 'safeint') return (tested) => Number.isSafeInteger(tested) && isInBounds(tested)
  return (tested) => isValid(schema, tested)
}

/** Checks as `safeParse` does, without its result. */
function isValid(schema: ZodType, value: unknown): boolean {
  const payload = { value, issues: [] }
  schema._zod.run(payload, {})
  return payload.issues.length === 0
}

const isNull: NodeTest = (tape, node) => node !== 0 && tape.isMissing(node)

const holdsMore = (tape: Tape, node: number): boolean =>
  tape.isText(node) || tape.isObject(node) || tape.isList(node)

const listsOnly =
  (test: NodeTest): NodeTest =>
  (tape, node) =>
    tape.isList(node) && test(tape, node)

function arrayTest(schema: ZodType, isItem: NodeTest): NodeTest {
  const minimum = findMinimum(schema)
  return minimum === null ? never : (tape, node) => tape.countItems(node, isItem) >= minimum
}

function stringTest(schema: ZodType): NodeTest {
  const minimum = findMinimum(schema)
  if (minimum === 0) return (tape, node) => tape.isText(node)
  if (minimum === 1) return (tape, node) => tape.isText(node) && tape.isFull(node)
  return (tape, node) => tape.isText(node) && isValid(schema, tape.readValue(node))
}

function wordTest(schema: ZodType): NodeTest {
  const { entries, values } = schema.def as { entries?: Record<string, unknown>; values?: readonly unknown[] }
  const all = entries === undefined ? values! : Object.values(entries)
  const words = new Words(all.filter((value) => typeof value === 'string'))
  return (tape, node) => tape.isOneOf(words, node)
}

const TYPED = new FieldFinder(['type'])

/** Returns the node of the type of an object, or 0. */
export function readType(tape: Tape, node: number): number {
  if (!tape.find(TYPED, node)) return 0
  const type = tape.found(TYPED.place.type)
  return tape.isText(type) ? type : 0
}
