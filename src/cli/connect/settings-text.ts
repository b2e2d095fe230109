/** Sets fields in the text of a settings file, and takes them back; everything else in it stays as the user has it. */
import { isDeepStrictEqual } from 'node:util'
import { type Document, isMap, isSeq, parseDocument } from 'yaml'
import type { Field, SettingsFile } from '../../../schemas/clients.ts'
import { quoteToml, quoteVariable } from '../../core/clients/settings.ts'

type Path = Field['path']

interface Format {
  /** False where an edit could change more than the fields. */
  isSafe(text: string): boolean
  /** Returns the form in which the file keeps a text. */
  encode(value: string): unknown
  /** Returns the value there, in the form of the file; undefined where there is none. */
  read(text: string, path: Path): unknown
  /** Writes the value; undefined removes the field. */
  write(text: string, path: Path, value: unknown): string
}

type JsonMap = { [key: string]: unknown }

const isJsonMap = (value: unknown): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const readAt = (value: unknown, keys: readonly (string | number)[]): unknown =>
  keys.reduce<unknown>((at, key) => (at as Record<string | number, unknown> | null | undefined)?.[key], value)
const isEmpty = (value: unknown, keys: readonly (string | number)[] = []): boolean => {
  const found = readAt(value, keys)
  return typeof found === 'object' && found !== null && Object.keys(found).length === 0
}
const parseJson = (text: string): unknown => (text.trim() === '' ? {} : JSON.parse(text))
const withoutSpace = (text: string): string => text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')

const json: Format = {
  // Comments, keys that appear twice and numbers that JavaScript rounds would not survive.
  isSafe(text) {
    try {
      const value = parseJson(text)
      return isJsonMap(value) && (text.trim() === '' || JSON.stringify(value) === withoutSpace(text))
    } catch {
      return false
    }
  },
  encode: (value) => value,
  read: (text, path) => readAt(parseJson(text), path),
  write(text, path, value) {
    const root = parseJson(text) as JsonMap
    const parent = path.slice(0, -1).reduce<JsonMap>((at, key) => {
      if (!isJsonMap(at[key])) at[key] = {}
      return at[key] as JsonMap
    }, root)
    const last = path.at(-1)!
    if (value === undefined) delete parent[last]
    else parent[last] = value
    const indent = /\n([ \t]+)"/.exec(text)?.[1] ?? 2
    return `${JSON.stringify(root, null, indent)}${text === '' || text.endsWith('\n') ? '\n' : ''}`
  },
}

const yaml: Format = {
  isSafe(text) {
    const { errors, contents } = parseDocument(text)
    return errors.length === 0 && (contents === null || isMap(contents))
  },
  encode: (value) => value,
  read(text, path) {
    const root = parseDocument(text)
    return readAt(root.toJS(), findYamlKeys(root, path))
  },
  write(text, path, value) {
    const root = parseDocument(text)
    const keys = findYamlKeys(root, path)
    if (value !== undefined) root.setIn(keys, value)
    else {
      root.deleteIn(keys)
      // An item of a list has lost its name with its last field: nothing could find it later.
      const item = keys.slice(0, -1)
      if (typeof item.at(-1) === 'number' && isEmpty(root.toJS(), item)) root.deleteIn(item)
    }
    return isMap(root.contents) && root.contents.items.length === 0 ? '' : root.toString({ lineWidth: 0 })
  },
}

/** Replaces `name=X` by the place of that item, or of the next one. */
function findYamlKeys(root: Document, path: Path): (string | number)[] {
  const keys: (string | number)[] = []
  for (const segment of path) {
    const name = /^name=(.*)$/.exec(segment)?.[1]
    const list = name === undefined ? null : root.getIn(keys)
    const items: unknown[] = isSeq(list) ? list.toJSON() : []
    const index = items.findIndex((item) => isJsonMap(item) && item.name === name)
    keys.push(name === undefined ? segment : index < 0 ? items.length : index)
  }
  return keys
}

/** Replaces the line at `index`; without one adds it at `end`. */
const putLine = (lines: readonly string[], index: number, line: string, end: number): string[] =>
  index < 0 ? lines.toSpliced(end, 0, line) : lines.toSpliced(index, 1, line)
const splitLines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
const joinLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const envLine = (name: string): RegExp => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`)

const env: Format = {
  // A value over several lines may contain what looks like another variable.
  isSafe: (text) => !/=\s*(["'`])(?:(?!\1)[^\n])*$/m.test(text),
  encode: quoteVariable,
  read(text, [name = '']) {
    const line = splitLines(text).findLast((one) => envLine(name).test(one))
    return line?.slice(line.indexOf('=') + 1)
  },
  write(text, [name = ''], value) {
    const lines = splitLines(text)
    const index = lines.findLastIndex((one) => envLine(name).test(one))
    return joinLines(
      value === undefined
        ? lines.toSpliced(index, 1)
        : putLine(lines, index, `${name}=${value}`, lines.length),
    )
  },
}

const TABLE_HEAD = /^\s*\[{1,2}[\w-][^[\]=,]*\]{1,2}\s*(?:#.*)?$/
/** Texts over several lines, quoted names, and tables that are written in another way. */
const UNCOMMON_TOML =
  /"""|'''|^\s*["'](?:model|model_provider|model_providers)["']|^\s*(?:model_providers|tollgate)\s*[.=]/m

/** Returns the lines of a table, from its first to the one behind its last value; null where there is none. */
function findTable(lines: readonly string[], table: Path): readonly [first: number, end: number] | null {
  const head = lines.findIndex((line) => line.replace(/#.*/, '').trim() === `[${table.join('.')}]`)
  if (head < 0 && table.length > 0) return null
  const next = lines.findIndex((line, index) => index > head && TABLE_HEAD.test(line))
  const last = lines.findLastIndex((line, index) => (next < 0 || index < next) && !/^\s*(?:#|$)/.test(line))
  return [head + 1, Math.max(head, last) + 1]
}

function findTomlLine(lines: readonly string[], path: Path): number {
  const [first, end] = findTable(lines, path.slice(0, -1)) ?? [0, 0]
  const pattern = new RegExp(`^\\s*${path.at(-1)}\\s*=`)
  return lines.findIndex((line, index) => index >= first && index < end && pattern.test(line))
}

const toml: Format = {
  isSafe: (text) =>
    !UNCOMMON_TOML.test(text) &&
    splitLines(text).every((line) => !/^\s*\[/.test(line) || TABLE_HEAD.test(line)),
  encode: quoteToml,
  read(text, path) {
    const lines = splitLines(text)
    const line = lines[findTomlLine(lines, path)]
    return line?.slice(line.indexOf('=') + 1).trim()
  },
  write(text, path, value) {
    const lines = splitLines(text)
    const table = path.slice(0, -1)
    const range = findTable(lines, table)
    if (value === undefined) {
      const left = lines.toSpliced(findTomlLine(lines, path), 1)
      const [first, end] = findTable(left, table) ?? [0, 0]
      return joinLines(table.length > 0 && first === end ? left.toSpliced(first - 1, 1) : left)
    }
    const line = `${path.at(-1)} = ${value}`
    if (range !== null) return joinLines(putLine(lines, findTomlLine(lines, path), line, range[1]))
    return joinLines([...lines, ...(lines.length === 0 ? [] : ['']), `[${table.join('.')}]`, line])
  },
}

const FORMATS: Readonly<Record<SettingsFile['format'], Format | null>> = {
  json,
  toml,
  yaml,
  env,
  'by hand': null,
}

/** Returns the text with the fields set; null where they must be set by hand. */
export function setFields(text: string, { format: name, fields }: SettingsFile): string | null {
  const format = FORMATS[name]
  if (format === null || !format.isSafe(text)) return null
  return fields.reduce(
    (edited, { path, value, keeps }) =>
      keeps && format.read(edited, path) !== undefined
        ? edited
        : format.write(edited, path, format.encode(value)),
    text,
  )
}

/** What `setFields` did to a file: null where it did not exist. */
export interface Change {
  readonly before: string | null
  readonly after: string
}

interface Undone {
  /** Null where the file is to be removed. */
  readonly text: string | null
  /** Fields that have changed since; they stay. */
  readonly kept: readonly string[]
}

/** Takes a change back; what has been written since then stays. Returns null where that is to be done by hand. */
export function undoFields(text: string, file: SettingsFile, { before, after }: Change): Undone | null {
  if (text === after || text === before) return { text: before, kept: [] }
  const format = FORMATS[file.format]
  if (format === null || !format.isSafe(text)) return null
  const kept: string[] = []
  let edited = text
  // From the last field on: a list item is found by its name, which is the first of its fields.
  for (const { path } of file.fields.toReversed()) {
    const [now, made, former] = [edited, after, before ?? ''].map((one) => format.read(one, path))
    if (now === undefined || isDeepStrictEqual(made, former)) continue
    if (!isDeepStrictEqual(now, made)) {
      kept.push(path.join('.'))
      continue
    }
    edited = format.write(edited, path, former)
    for (let length = path.length - 1; length > 0; length -= 1) {
      const parent = path.slice(0, length)
      const isOurs = format.read(before ?? '', parent) === undefined
      if (isOurs && isEmpty(format.read(edited, parent))) edited = format.write(edited, parent, undefined)
    }
  }
  const isGone = before === null && ['', '{}'].includes(edited.trim())
  return { text: isGone ? null : edited, kept }
}
