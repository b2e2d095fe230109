/**
 * Requests of agents are lists of a hundred messages and tools, and a few settings. Whether the items of a list are as
 * the contract wants them can be recognised by their bytes, at a fraction of what parsing and checking them costs.
 * So the contract is given the request without the usual items; where it has a complaint, it is given all of it.
 */
import type { ZodType } from 'zod'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { listNames, type NameSet } from '../../core/json/names.ts'
import {
  FieldFinder,
  KnownNames,
  type NodeTest,
  type ScannedFields,
  scanJson,
  type Tape,
} from '../../core/json/scanner/tape.ts'
import { applySplices, type Splice } from '../../core/json/splice.ts'
import { type ReadBody, readJsonFields } from './client-json.ts'
import { countFault, MAX_TOOLS, MAX_UNCOUNTED_NODES } from './counts.ts'
import { STORED_OBJECT_FIELDS, withoutForeignFields } from './foreign-fields.ts'

export interface FastPathItems {
  /** True if its node shows that the contract takes the item and nothing of it is read. False for any other. */
  readonly matches: NodeTest
  /** The simplest item that the contract takes. Null where the list may be empty. */
  readonly placeholder: string | null
}

/** In the lists of its request usual items are missing. */
export interface ReadRequest<Request, Name extends string> extends ReadBody<Request> {
  /** Number of items in each list; null without the list. */
  readonly counts: Readonly<Record<Name, number | null>>
}

interface AroundLists<Name extends string> extends ScannedFields {
  /** Leave the usual items out. */
  readonly splices: readonly Splice[]
  /** How many fewer items each list then has. */
  readonly omitted: Partial<Record<Name, number>>
}

/** Deep enough for the fields of a part of the content of a message. */
const DEEPEST = 5
const COMMA = ','
const TOOLS = 'tools'

/** Reads the requests of one contract. `Name`s are fields that may hold lists. */
export class RequestReader<Request, Name extends string> {
  readonly #schema: ZodType<Request>
  readonly #place: NameSet
  readonly #names: KnownNames
  readonly #lists: ReadonlyArray<readonly [name: Name, items: FastPathItems]>
  readonly #finder: FieldFinder<Name>

  /** @param watched further names that make the full contract necessary, anywhere in the request */
  constructor(
    protocol: ChatProtocol,
    schema: ZodType<Request>,
    place: NameSet,
    lists: Readonly<Record<Name, FastPathItems>>,
    watched: readonly string[] = [],
  ) {
    this.#schema = withoutForeignFields(protocol, schema)
    this.#place = place
    this.#names = new KnownNames(listNames(place), [...STORED_OBJECT_FIELDS, ...watched])
    this.#lists = Object.entries(lists) as [Name, FastPathItems][]
    this.#finder = new FieldFinder(this.#lists.map(([name]) => name))
  }

  /** @throws Failure `invalid_request` with a message that names the field */
  read(body: Buffer): ReadRequest<Request, Name> {
    const around = scanJson(body, DEEPEST, this.#names, (tape) => this.#scanAroundLists(tape))
    return (around && this.#readAroundLists(body, around)) ?? this.#readAll(body)
  }

  #readAll(body: Buffer): ReadRequest<Request, Name> {
    const read = readJsonFields(this.#schema, body, this.#place)
    return { ...read, counts: this.#counts(read.request, {}) }
  }

  /** Returns what is needed to read the request without its usual items; null where the full contract must read it. */
  #scanAroundLists(tape: Tape): AroundLists<Name> | null {
    if (!tape.find(this.#finder, 0) || tape.nodeAfter(0) > MAX_UNCOUNTED_NODES) return null
    const splices: Splice[] = []
    const omitted: Partial<Record<Name, number>> = {}
    for (const [name, items] of this.#lists) {
      const list = tape.found(this.#finder.place[name])
      if (tape.isList(list)) omitted[name] = omitFastPathItems(tape, list, items, splices)
    }
    return { splices, omitted, ...tape.listRootFields() }
  }

  /** Returns the request; null where the full contract must read it. */
  #readAroundLists(
    body: Buffer,
    { splices, omitted, fields, open }: AroundLists<Name>,
  ): ReadRequest<Request, Name> | null {
    const rest: unknown = JSON.parse(applySplices(body, splices).toString('utf8'))
    if ((omitted[TOOLS as Name] ?? 0) > MAX_TOOLS || countFault(rest) !== null) return null
    const { success, data } = this.#schema.safeParse(rest)
    return success ? { request: data, counts: this.#counts(data, omitted), fields, open } : null
  }

  #counts(request: Request, omitted: Partial<Record<Name, number>>): Record<Name, number | null> {
    const counts = this.#lists.map(([name]) => {
      const list = (request as Record<string, unknown>)[name]
      return [name, Array.isArray(list) ? list.length + (omitted[name] ?? 0) : null] as const
    })
    return Object.fromEntries(counts) as Record<Name, number | null>
  }
}

/** Adds the splice that leaves the usual items out of the list; gives how many fewer it has with it. */
function omitFastPathItems(
  tape: Tape,
  list: number,
  { matches, placeholder }: FastPathItems,
  splices: Splice[],
): number {
  const kept: string[] = []
  const end = tape.nodeAfter(list)
  let count = 0
  for (let item = list + 1; item < end; item = tape.nodeAfter(item)) {
    count++
    if (!matches(tape, item)) kept.push(tape.readRawText(item))
  }
  if (kept.length === 0 && count > 0 && placeholder !== null) kept.push(placeholder)
  if (kept.length < count)
    splices.push({ start: tape.readStart(list), end: tape.readEnd(list), text: `[${kept.join(COMMA)}]` })
  return count - kept.length
}
