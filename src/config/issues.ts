/** Words zod's findings for the author of the file. */
import { z } from 'zod'
import { suggest } from '../core/suggest.ts'
import type { Path, Problem } from './problem.ts'
import type { Source } from './source.ts'

type Issue = z.core.$ZodIssue

export function toProblems(issues: readonly Issue[], schema: z.ZodType, source: Source): Problem[] {
  return issues.flatMap((issue) => explainIssue(issue, schema, source))
}

function explainIssue(issue: Issue, schema: z.ZodType, source: Source): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const known = listFields(schema, issue.path)
    return issue.keys.map((key) =>
      source.toProblemWithKey([...issue.path, key], `There is no such field.${suggest(key, known)}`),
    )
  }
  if (issue.code === 'invalid_key') {
    const reason = issue.issues.map((inner) => inner.message).join('; ')
    return [source.toProblemWithKey(issue.path, `The name ${reason}.`)]
  }
  const value = readValue(source.value, issue.path)
  if (issue.code === 'invalid_value' && value !== undefined) {
    const values = issue.values.map(String)
    const hint = typeof value === 'string' ? suggest(value, values) : ''
    return [
      source.toProblem(
        issue.path,
        `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}.${hint}`,
      ),
    ]
  }
  const unset = source.findUnset(issue.path)
  const hint = unset.length > 0 ? ` (not set in the environment: ${unset.join(', ')})` : ''
  return [source.toProblem(issue.path, `${printSentence(issue, value)}${hint}.`)]
}

function printSentence(issue: Issue, value: unknown): string {
  if (value === undefined) return 'is required'
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${addArticle(issue.expected)}, not ${addArticle(nameType(value))}`
    case 'invalid_union':
      if (listExpected(issue).length === 0) return issue.message
      return `must be ${listExpected(issue).map(addArticle).join(' or ')}, not ${addArticle(nameType(value))}`
    case 'too_small':
      return `must be ${bound(issue.inclusive, 'at least', 'more than')} ${issue.minimum}${findUnit(issue.origin)}`
    case 'too_big':
      return `must be ${bound(issue.inclusive, 'at most', 'less than')} ${issue.maximum}${findUnit(issue.origin)}`
    case 'invalid_format':
      return formatSentence(issue.format, issue.message)
    default:
      return issue.message.replace(/\.$/, '')
  }
}

function formatSentence(format: string, message: string): string {
  if (format === 'url') return 'must be a URL that starts with http:// or https://'
  if (format === 'datetime') return 'must be an instant such as 2026-12-31T00:00:00Z'
  return message
}

const bound = (inclusive: boolean | undefined, with_: string, without: string) =>
  inclusive === false ? without : with_

const findUnit = (origin: string) => (origin === 'string' ? ' characters long' : '')

function listExpected(issue: z.core.$ZodIssueInvalidUnion): string[] {
  const found = issue.errors
    .flat()
    .flatMap((inner) => (inner.code === 'invalid_type' ? [inner.expected] : []))
  return [...new Set(found)]
}

const NAMES: Readonly<Record<string, string>> = {
  object: 'a group of fields',
  record: 'a group of fields',
  array: 'a list',
  int: 'a whole number',
  null: 'empty',
}

const addArticle = (type: string) => NAMES[type] ?? `a ${type}`

function nameType(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function readValue(value: unknown, path: Path): unknown {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined
    current = (current as Record<PropertyKey, unknown>)[key]
  }
  return current
}

/** Returns the field names that a schema takes at a path. */
function listFields(schema: z.ZodType, path: Path): string[] {
  let current: unknown = unwrap(schema)
  for (const key of path) {
    if (current instanceof z.ZodObject) current = current.shape[String(key)]
    else if (current instanceof z.ZodArray) current = current.element
    else if (current instanceof z.ZodRecord) current = current.valueType
    else return []
    current = unwrap(current)
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : []
}

/** Returns the schema itself, below its defaults and transforms. */
export function unwrap(schema: unknown): unknown {
  let current = schema
  for (;;) {
    if (current instanceof z.ZodPipe) current = current.in
    else if (
      current instanceof z.ZodOptional ||
      current instanceof z.ZodNullable ||
      current instanceof z.ZodDefault ||
      current instanceof z.ZodPrefault
    )
      current = current.unwrap()
    else return current
  }
}
