/**
 * Reads and changes one model or channel in the text of a configuration. A change replaces only the characters of the
 * fields that it names: comments, order, quotes and everything else of the file stay as they are.
 */
import { isDeepStrictEqual } from 'node:util'
import { isMap, isScalar, isSeq, type Pair, parseDocument, stringify, type YAMLMap, type YAMLSeq } from 'yaml'
import { readSource } from './source.ts'

type EntryList = 'models' | 'channels'

/** A new value of a field; null removes the field. */
export interface FieldChange {
  /** Names of fields; the item of a list is named by its index, and one more item by the length of the list. */
  readonly path: readonly string[]
  readonly value: unknown
}

interface Part {
  readonly from: number
  readonly to: number
  readonly by: string
}

const ELSEWHERE = 'This form cannot change it: edit the text.'
const WIDE = { lineWidth: 0 } as const

type Ranged = { readonly range?: readonly [number, number, number] | null } | null

/** Returns where a node is in the text. @throws RangeError for one that is not there */
function findRange(node: unknown): readonly [from: number, to: number] {
  const range = (node as Ranged)?.range
  if (!range) throw new RangeError(ELSEWHERE)
  return [range[0], range[1]]
}

const findPair = (map: YAMLMap, name: string): Pair | undefined =>
  map.items.find(({ key }) => isScalar(key) && String(key.value) === name)

/** Returns the items of a list of the file. */
function listItems(text: string, list: EntryList) {
  const document = parseDocument(text)
  const items = document.get(list)
  if (document.errors.length > 0 || !isSeq(items))
    throw new RangeError('The text has problems: correct them first.')
  return items
}

function findItem(text: string, list: EntryList, id: string): YAMLMap {
  const item = listItems(text, list).items.find((one) => isMap(one) && one.get('id') === id)
  if (!isMap(item)) throw new RangeError(`The text has no ${id} in ${list}.`)
  return item
}

/** Returns the entries of a list, as they are written. */
function readEntries(text: string, list: EntryList): readonly Record<string, unknown>[] {
  const found = (readSource(text, '', null).value as Record<string, unknown> | null)?.[list]
  return Array.isArray(found) ? found.filter((one) => typeof one === 'object' && one !== null) : []
}

/** Prints a value on one line. A text keeps the quotes that the one before it had. */
function printValue(value: unknown, isInFlow: boolean, former = ''): string {
  if (typeof value === 'string' && former.startsWith('"')) return JSON.stringify(value)
  if (typeof value === 'string' && former.startsWith("'")) return `'${value.replaceAll("'", "''")}'`
  if (typeof value !== 'object' && !isInFlow) return stringify(value, WIDE).trimEnd()
  return stringify(value, { ...WIDE, collectionStyle: 'flow', flowCollectionPadding: true }).trimEnd()
}

const nest = (path: readonly string[], value: unknown): unknown =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1
/** Returns the end of the line, its newline included. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}
/** Returns the end of what is written: the range of a block ends behind its last newline. */
const contentEnd = (text: string, from: number, to: number): number =>
  from + text.slice(from, to).trimEnd().length

/** Returns the end of the value of a pair, or of its key where it has none. */
function pairEnd(text: string, pair: Pair): number {
  const [, keyEnd] = findRange(pair.key)
  if (pair.value === null || !(pair.value as Ranged)?.range) return keyEnd + 1
  const [from, to] = findRange(pair.value)
  return Math.max(contentEnd(text, from, to), keyEnd + 1)
}

/** Adds a field at the end of a map. */
function addField(text: string, map: YAMLMap, name: string, value: unknown): Part {
  const [from, to] = findRange(map)
  const last = map.items.at(-1)
  const field = `${name}: ${printValue(value, map.flow === true)}`
  if (map.flow) {
    if (last === undefined) return { from, to, by: `{ ${field} }` }
    const end = pairEnd(text, last)
    return { from: end, to: end, by: `, ${field}` }
  }
  if (last === undefined) throw new RangeError(ELSEWHERE)
  const column = findRange(map.items[0]!.key)[0] - lineStart(text, findRange(map.items[0]!.key)[0])
  // Behind a comment that stands at the end of the last line.
  const end = lineEnd(text, pairEnd(text, last))
  const newline = text[end - 1] === '\n' ? '' : '\n'
  return { from: end, to: end, by: `${newline}${' '.repeat(column)}${field}\n` }
}

function removeField(text: string, map: YAMLMap, pair: Pair): Part {
  const [from] = findRange(pair.key)
  const end = pairEnd(text, pair)
  if (!map.flow) {
    // The first field of an item may share its line with the dash.
    const isAlone = text.slice(lineStart(text, from), from).trim() === ''
    if (!isAlone || map.items.length === 1) throw new RangeError(ELSEWHERE)
    return { from: lineStart(text, from), to: lineEnd(text, end), by: '' }
  }
  const at = map.items.indexOf(pair)
  const next = map.items[at + 1]
  if (next !== undefined) return { from, to: findRange(next.key)[0], by: '' }
  const before = map.items[at - 1]
  return { from: before === undefined ? from : pairEnd(text, before), to: end, by: '' }
}

/** Returns the range of an item, with its dash and its lines in a block. */
function findWhole(text: string, list: YAMLSeq, index: number): readonly [from: number, to: number] {
  const [from, to] = findRange(list.items[index])
  if (list.flow) return [from, to]
  return [lineStart(text, text.lastIndexOf('-', from)), lineEnd(text, contentEnd(text, from, to))]
}

function changeItem(text: string, list: YAMLSeq, { path, value }: FieldChange): Part | null {
  const [name, ...rest] = path
  const index = Number(name)
  const item = list.items[index]
  const last = list.items.length - 1
  if (rest.length > 0 && isMap(item)) return changeField(text, item, { path: rest, value })
  if (rest.length > 0 || last < 0) throw new RangeError(ELSEWHERE)
  if (item === undefined) {
    const [from, end] = findWhole(text, list, last)
    const printed = printValue(value, list.flow === true)
    if (list.flow) return { from: end, to: end, by: `, ${printed}` }
    const dash = text.slice(from, text.indexOf('-', from))
    return { from: end, to: end, by: `${text[end - 1] === '\n' ? '' : '\n'}${dash}- ${printed}\n` }
  }
  const [from, to] = findRange(item)
  const end = contentEnd(text, from, to)
  if (value !== null)
    return { from, to: end, by: printValue(value, list.flow === true, text.slice(from, end)) }
  const [start, after] = findWhole(text, list, index)
  if (!list.flow) return { from: start, to: after, by: '' }
  if (index < last) return { from, to: findRange(list.items[index + 1])[0], by: '' }
  return { from: index === 0 ? from : findRange(list.items[index - 1])[1], to, by: '' }
}

function changeField(text: string, entry: YAMLMap, { path, value }: FieldChange): Part | null {
  const [name, ...rest] = path
  if (name === undefined) throw new RangeError(ELSEWHERE)
  const pair = findPair(entry, name)
  if (pair === undefined) return value === null ? null : addField(text, entry, name, nest(rest, value))
  if (rest.length > 0) {
    if (isMap(pair.value)) return changeField(text, pair.value, { path: rest, value })
    if (isSeq(pair.value)) return changeItem(text, pair.value, { path: rest, value })
    throw new RangeError(ELSEWHERE)
  }
  if (value === null) return removeField(text, entry, pair)
  const [, keyEnd] = findRange(pair.key)
  if (isScalar(pair.value) && (pair.value as Ranged)?.range) {
    const [from, to] = findRange(pair.value)
    const former = text.slice(from, to).trimEnd()
    if (former !== '')
      return { from, to: from + former.length, by: printValue(value, entry.flow === true, former) }
  } else if (!isMap(pair.value) && !isSeq(pair.value) && pair.value !== null) throw new RangeError(ELSEWHERE)
  return {
    from: text.indexOf(':', keyEnd) + 1,
    to: pairEnd(text, pair),
    by: ` ${printValue(value, entry.flow === true)}`,
  }
}

const apply = (text: string, { from, to, by }: Part): string => text.slice(0, from) + by + text.slice(to)

function setIn(entry: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  const { [name!]: former, ...others } = (entry ?? {}) as Record<string, unknown>
  const next = rest.length === 0 ? value : setIn(former, rest, value)
  return next === null ? others : { ...(entry as object), [name!]: next }
}

const isMapped = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the changes of the parts of a field that lead to its new value: what stays the same stays as it is written. */
function splitChange(former: unknown, { path, value }: FieldChange): readonly FieldChange[] {
  if (isDeepStrictEqual(former, value)) return []
  const split = (name: string | number, before: unknown, after: unknown) =>
    splitChange(before, { path: [...path, String(name)], value: after })
  if (isMapped(former) && isMapped(value) && Object.keys(value).length > 0) {
    // Additions first: a map in a block is never empty.
    const names = new Set([...Object.keys(value), ...Object.keys(former)])
    return [...names].flatMap((name) => split(name, former[name] ?? null, value[name] ?? null))
  }
  if (!Array.isArray(former) || !Array.isArray(value) || former.length === 0 || value.length === 0)
    return [{ path, value }]
  const isSame = (at: number, other: number) => isDeepStrictEqual(former.at(at), value.at(other))
  const surplus = former.length - value.length
  let start = 0
  while (start < value.length && isSame(start, start)) start += 1
  let kept = 0
  while (surplus > 0 && kept < value.length - start && isSame(-1 - kept, -1 - kept)) kept += 1
  const changed = value.slice(start, value.length - kept)
  const removed = Array.from({ length: Math.max(surplus, 0) }, (_, index) => ({
    path: [...path, String(former.length - kept - 1 - index)],
    value: null,
  }))
  return [...changed.flatMap((one, index) => split(start + index, former[start + index], one)), ...removed]
}

/**
 * Returns the text with other values of fields of one entry.
 * @throws RangeError where the text has no such entry, or writes a field in a way that only an editor of text can change
 */
function changeEntry(text: string, list: EntryList, id: string, changes: readonly FieldChange[]): string {
  const find = (within: string) => readEntries(within, list).find((entry) => entry.id === id)
  const change = (within: string, parts: readonly FieldChange[], wanted: unknown): string => {
    const changed = parts.reduce((edited, one) => {
      const part = changeField(edited, findItem(edited, list, id), one)
      return part === null ? edited : apply(edited, part)
    }, within)
    if (!isDeepStrictEqual(find(changed), wanted)) throw new RangeError(ELSEWHERE)
    return changed
  }
  return changes.reduce((edited, whole) => {
    const entry = find(edited)
    const wanted = setIn(entry, whole.path, whole.value)
    const former = whole.path.reduce<unknown>((value, name) => (isMapped(value) ? value[name] : null), entry)
    try {
      return change(edited, splitChange(former, whole), wanted)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return change(edited, [whole], wanted)
    }
  }, text)
}

/** Returns where a field of an entry is, or what is nearest to it. @throws RangeError where the text has no such entry */
function findField(text: string, list: EntryList, id: string, path: readonly string[]) {
  const source = readSource(text, '', null)
  const entries = (source.value as Record<string, unknown> | null)?.[list]
  const index = Array.isArray(entries) ? entries.findIndex((one) => isMapped(one) && one.id === id) : -1
  if (index < 0) throw new RangeError(`The text has no ${id} in ${list}.`)
  const { line, column } = source.toProblemWithKey([list, index, ...path], '')
  return { line, column }
}

/** Returns the text with another entry at the end of a list. @throws RangeError where the text has it already */
function addEntry(text: string, list: EntryList, entry: Readonly<Record<string, unknown>>): string {
  const items = listItems(text, list)
  if (readEntries(text, list).some(({ id }) => id === entry.id))
    throw new RangeError(`The text has ${String(entry.id)} in ${list} already.`)
  const last = items.items.at(-1)
  const first = items.items[0]
  if (items.flow || last === undefined || first === undefined) throw new RangeError(ELSEWHERE)
  const [from, to] = findRange(last)
  const [firstFrom] = findRange(first)
  const dash = text.lastIndexOf('-', firstFrom)
  const indent = ' '.repeat(dash - lineStart(text, dash))
  const lines = stringify([entry], WIDE).trimEnd().split('\n')
  const end = lineEnd(text, contentEnd(text, from, to))
  const newline = text[end - 1] === '\n' ? '' : '\n'
  return apply(text, {
    from: end,
    to: end,
    by: `${newline}${lines.map((line) => indent + line).join('\n')}\n`,
  })
}

/** Returns the text without an entry. @throws RangeError */
function removeEntry(text: string, list: EntryList, id: string): string {
  const items = listItems(text, list)
  const index = items.items.findIndex((one) => isMap(one) && one.get('id') === id)
  if (index < 0) throw new RangeError(`The text has no ${id} in ${list}.`)
  if (items.flow || items.items.length < 2) throw new RangeError(ELSEWHERE)
  const [from, to] = findWhole(text, items, index)
  const removed = apply(text, { from, to, by: '' })
  if (readEntries(removed, list).length !== items.items.length - 1) throw new RangeError(ELSEWHERE)
  return removed
}

/** Reads and changes models and channels in a text. */
export interface ConfigurationEditor {
  read(text: string, list: EntryList): readonly Record<string, unknown>[]
  change(text: string, list: EntryList, id: string, changes: readonly FieldChange[]): string
  add(text: string, list: EntryList, entry: Readonly<Record<string, unknown>>): string
  remove(text: string, list: EntryList, id: string): string
  find(text: string, list: EntryList, id: string, path: readonly string[]): { line: number; column: number }
}

export const CONFIGURATION_EDITOR: ConfigurationEditor = {
  read: readEntries,
  change: changeEntry,
  add: addEntry,
  remove: removeEntry,
  find: findField,
}
