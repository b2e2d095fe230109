/** Fields of an operation's input as options and arguments; an invalid value is wrong usage. */
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'

/** Words that mean null, in options and in output. */
export const NULL_WORDS: Readonly<Record<string, string>> = {
  allowed_models: 'all',
  events: 'all',
  allowed_addresses: 'any',
  expires_at: 'never',
  requests_per_minute: 'none',
  concurrency: 'none',
  max_price: 'none',
}
const OPTION_NAMES: Readonly<Record<string, string>> = {
  requests_per_minute: 'rpm',
  allowed_models: 'models',
  allowed_addresses: 'addresses',
  installation_role: 'role',
}
const INSTANT = z.union([z.iso.datetime({ offset: true }), z.iso.date()])
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }
const MAX_ENTRIES = 10_000

export interface Field {
  readonly name: string
  readonly schema: z.ZodType
  /** Without what makes it optional. */
  readonly base: z.ZodType
  readonly description: string
  readonly isRequired: boolean
  readonly defaultValue: unknown
  /** The word that means null. */
  readonly nullWord: string | null
}

export function readField(name: string, schema: z.ZodType): Field {
  let base = schema
  let { description = '' } = schema
  while (base instanceof z.ZodOptional || base instanceof z.ZodNullable || base instanceof z.ZodDefault) {
    base = base.unwrap() as z.ZodType
    description ||= base.description ?? ''
  }
  const { success: isOptional, data: defaultValue } = schema.safeParse(undefined)
  const isNullSaid = schema.isNullable() && (defaultValue === undefined || name in NULL_WORDS)
  const nullWord = isNullSaid ? (NULL_WORDS[name] ?? 'none') : null
  return { name, schema, base, description, isRequired: !isOptional, defaultValue, nullWord }
}

/** Returns the name of the option of a field: `--expires` of `expires_at`. */
export const nameOption = (field: string): string =>
  OPTION_NAMES[field] ?? field.replace(/_(id|at|seconds)$/, '').replaceAll('_', '-')

const readItems = ({ base }: Field) => (base instanceof z.ZodArray ? (base.element as z.ZodType) : null)
const isInstant = ({ base }: Field) =>
  base.def.type === 'string' && (base as z.ZodString).format === 'datetime'
const isDuration = ({ name }: Field) => name.endsWith('_seconds')

/** Returns the possible values; null if there are too many to list. */
export function listChoices(field: Field): readonly string[] | null {
  const { base, nullWord } = field
  return base instanceof z.ZodEnum
    ? [...(base.options as string[]), ...(nullWord === null ? [] : [nullWord])]
    : null
}

/** Returns whether the option takes no value. */
export const isFlag = ({ defaultValue }: Field): boolean => defaultValue === false

export function describeValue(field: Field): string {
  const { name, base, nullWord } = field
  const what = () => {
    if (/(^|_)(id|ref)$/.test(name)) return 'id'
    if (isInstant(field) || isDuration(field) || name === 'from' || name === 'to') return 'time'
    if (base instanceof z.ZodNumber) return 'n'
    if (base instanceof z.ZodArray) return 'a,b'
    if (base instanceof z.ZodBoolean) return 'on|off'
    if (base instanceof z.ZodObject) return 'path'
    return base instanceof z.ZodPipe && base.in instanceof z.ZodUnion
      ? 'credits'
      : (name.split('_').at(-1) ?? name)
  }
  const isNullShown = nullWord !== null && field.defaultValue === undefined && !(base instanceof z.ZodEnum)
  return `<${what()}${isNullShown ? `|${nullWord}` : ''}>`
}

/** Returns the description for `--help`, with the meaning of null. */
export function describeOption({ base, description, defaultValue, nullWord }: Field): string {
  if (base instanceof z.ZodObject) return 'Its YAML file'
  const isNull = defaultValue === null || nullWord === null
  const [text = '', ofNull] = description.split(/(?:^| )(?:null|Neither): /)
  const parts = [text.replace(/\.$/, '').replaceAll('`', '"')]
  const meaning = ofNull?.replace(/\.$/, '')
  if (meaning !== undefined && (isNull || meaning !== nullWord))
    parts.push(isNull ? `(default: ${meaning})` : `(${nullWord}: ${meaning})`)
  if (typeof defaultValue === 'string' && defaultValue !== '') parts.push(`(default: ${defaultValue})`)
  return parts.join(' ').trim()
}

/** Reads the value of an option or argument. The value is in an object because commander takes no null. */
export function readValue(field: Field, text: string): { readonly value: unknown } {
  // A file is read later, before its operation runs.
  if (field.base instanceof z.ZodObject) return { value: text }
  const value = text === field.nullWord ? null : parseText(field, text)
  const issue = field.schema.safeParse(value).error?.issues[0]
  const isJudgedLater = issue?.code === 'custom' && field.base instanceof z.ZodString
  if (issue !== undefined && !isJudgedLater) throw new InvalidArgumentError(complain(field, issue))
  if (field.name === 'expires_at' && value !== null && Date.parse(String(value)) <= Date.now())
    throw new InvalidArgumentError('It is in the past: the key would be refused at once. Give a later time.')
  return { value }
}

function parseText(field: Field, text: string): unknown {
  const { base } = field
  if (isDuration(field)) return parseSeconds(text)
  if (base instanceof z.ZodNumber) return /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (base instanceof z.ZodBoolean) return text === 'on' ? true : text === 'off' ? false : text
  if (isInstant(field)) return INSTANT.safeParse(text).success ? new Date(text).toISOString() : text
  const items = readItems(field)
  if (items === null) return text
  if (text === 'none') return []
  const names = splitNames(text)
  if (names.includes('')) return text
  return items instanceof z.ZodEnum && names.every((name) => items.options.includes(name))
    ? items.options.filter((name) => names.includes(String(name)))
    : names
}

function parseSeconds(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return Number(count) * (SECONDS[unit] ?? Number.NaN)
}

/** Returns what a value must be. */
function complain(field: Field, issue: z.core.$ZodIssue): string {
  const { base, nullWord } = field
  const orNull = nullWord === null ? '' : `, or "${nullWord}"`
  const items = readItems(field)
  if (items !== null)
    return `It must be ${describeList(items instanceof z.ZodEnum ? items.options : null)}${orNull}.`
  if (isDuration(field)) return 'It must be a time from 0s to 7d, such as 30m, 24h or 2d.'
  if (isInstant(field)) return `It must be an RFC 3339 time such as 2030-01-31T12:00:00Z, or a day${orNull}.`
  if (base instanceof z.ZodNumber)
    return `It must be a whole number from ${base.minValue} to ${base.maxValue}${orNull}.`
  const choices = listChoices(field) ?? (base instanceof z.ZodBoolean ? ['on', 'off'] : null)
  if (choices !== null) return `It must be one of ${choices.join(', ')}.`
  if (base instanceof z.ZodString && (issue.code === 'too_small' || issue.code === 'too_big'))
    return `It must have ${base.minLength ?? 0} to ${base.maxLength} characters.`
  const message = issue.message.replace(/^(?=is |has |must |names )/, 'It ')
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}

const describeList = (known: readonly unknown[] | null): string =>
  `a list${known === null ? '' : ` of ${known.join(', ')}`}, separated by commas`

/** Reads how many entries of a list are printed. */
export const readLimit = (text: string): number => readCount(text, 1)

/** Reads a whole number up to the most entries that a command prints. */
export function readCount(text: string, least: number): number {
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (count >= least && count <= MAX_ENTRIES) return count
  throw new InvalidArgumentError(`It must be a whole number from ${least} to ${MAX_ENTRIES}.`)
}

/** Reads a list of names, which must be among `choices` if given. */
export function readNames(text: string, choices: readonly string[] | null = null): string[] {
  const names = splitNames(text)
  if (!names.includes('') && names.every((name) => choices?.includes(name) ?? true)) return names
  throw new InvalidArgumentError(`It must be ${describeList(choices)}.`)
}

const splitNames = (text: string): string[] => [...new Set(text.split(',').map((part) => part.trim()))]
