/** Words for complaints of schemas, in place of those that name values of JavaScript. */
import type { z } from 'zod'

/** What the length of each kind of value counts. */
const COUNTED: Readonly<Record<string, string>> = {
  string: 'characters',
  array: 'entries',
  set: 'entries',
  map: 'fields',
  object: 'fields',
  file: 'bytes',
}

const FORMATS: Readonly<Record<string, string>> = {
  email: 'an email address',
  url: 'an address, such as https://example.com',
  datetime: 'a time, such as 2030-01-31T12:00:00Z',
  date: 'a date, such as 2030-01-31',
}

const printLimit = (origin: string, words: string, limit: number | bigint): string =>
  COUNTED[origin] === undefined
    ? `it must be ${words} ${limit}`
    : `it must have ${words} ${limit} ${COUNTED[origin]}`

/** Options of each parse of what a client sends. */
export const PLAIN_ISSUES: { readonly error: z.core.$ZodErrorMap } = {
  error: (issue) => {
    switch (issue.code) {
      case 'invalid_type':
        if (issue.input === undefined) return 'it is missing'
        return Number.isNaN(issue.input) ? 'it is not a number' : undefined
      case 'too_big':
        return printLimit(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)
      case 'too_small':
        return printLimit(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)
      case 'invalid_format':
        return FORMATS[issue.format] && `it is not ${FORMATS[issue.format]}`
      case 'invalid_value':
        return issue.values.length === 1
          ? `it must be ${String(issue.values[0])}`
          : `it must be one of ${issue.values.map(String).join(', ')}`
      default:
        return undefined
    }
  },
}
