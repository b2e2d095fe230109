/** Makes commands from operations: their input becomes arguments and options, their answer a record or a table. */
import { Argument, Option } from 'commander'
import { Failure } from '../../../schemas/failure.ts'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import type { CommandForm, Operation } from '../../../schemas/management/operation.ts'
import { TYPED_TO_CONFIRM } from '../../core/confirmation.ts'
import { assertAgreed } from '../confirm.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { type Json, type JsonObject, printable } from '../output.ts'
import { type Effect, EXTRAS, type Extra } from './extras.ts'
import {
  describeOption,
  describeValue,
  type Field,
  isFlag,
  listChoices,
  nameOption,
  readField,
  readLimit,
  readValue,
} from './fields.ts'
import type { Input } from './run.ts'
import { inWords } from './texts.ts'

/** What an id names, if it is not the first word of the command. */
const NOUNS: Readonly<Record<string, string>> = {
  wallet: 'account',
  payments: 'payment',
  kb: 'knowledge base',
  channels: 'channel',
  status: 'note',
}

/** A field in a path or an effect. */
const FIELD_PATTERN = /\{(\w+)\}/g

/** One of the operations of a command. */
interface Variant {
  readonly operation: Operation
  readonly form: CommandForm
  readonly args: readonly Field[]
  /** By the name of the option. */
  readonly options: ReadonlyMap<string, Field>
  /** Names of required options. */
  readonly required: readonly string[]
}

const split = (names: string): string[] => names.split(' ').filter((name) => name !== '')

function describeVariant(operation: Operation, form: CommandForm): Variant {
  const { names = {}, values = {}, flags = {} } = form
  const { shape } = operation.input
  const inPath = [...operation.path.matchAll(FIELD_PATTERN)].map(([, name = '']) => name)
  const args = form.args === undefined ? inPath.filter((name) => !(name in names)) : split(form.args)
  const flagged = Object.values(flags).flatMap(([, set]) => Object.keys(set))
  const isOption = (name: string) => ![...args, ...flagged, 'limit', 'cursor'].includes(name)
  const fields = (form.options === undefined ? Object.keys(shape) : split(form.options))
    .filter(isOption)
    .map((name) => ({
      ...readField(name, shape[name] as never),
      ...(name in values && { defaultValue: values[name], isRequired: false }),
    }))
  const mustBeGiven = ({ name, isRequired }: Field) => isRequired || split(form.required ?? '').includes(name)
  const nameField = ({ name }: Field) => names[name] ?? nameOption(name)
  return {
    operation,
    form,
    args: args.map((name) => readField(name, shape[name] as never)),
    options: new Map(fields.map((field) => [nameField(field), field])),
    required: fields.filter(mustBeGiven).map(nameField),
  }
}

/** Adds every command that an operation describes, below the groups that `program` has already. */
export function addOperationCommands(program: Command, context: Context): void {
  const variants = OPERATIONS.flatMap((operation) =>
    (operation.commands ?? []).map((form) => describeVariant(operation, form)),
  )
  for (const [words, same] of Map.groupBy(variants, ({ form }) => form.words)) {
    const [first = '', second] = words.split(' ')
    const parent = second === undefined ? program : program.group(first)
    addCommand(parent.command(second ?? first), same, context)
  }
}

function addCommand(command: Command, variants: readonly Variant[], context: Context): void {
  const { form, operation, args } = variants[0]!
  const { words, flags = {}, by, limit } = form
  const extra: Extra = EXTRAS[words] ?? {}
  const summary = variants.find((variant) => variant.form.summary !== undefined)?.form.summary
  command.description((summary ?? operation.summary).replace(/\.$/, ''))
  for (const field of args) command.addArgument(makeArgument(field, words.split(' ')[0]!))
  const fields = new Map(variants.flatMap((variant) => [...variant.options]))
  for (const [name, field] of fields)
    command.addOption(makeOption(name, field, isAlwaysRequired(name, variants)))
  for (const [name, [text]] of Object.entries(flags))
    command.addOption(
      new Option(`--${name}`, text).conflicts(Object.keys(flags).filter((other) => other !== name)),
    )
  if (by !== undefined) command.requiredOption('--by <id>', `${by} (required)`)
  if (limit !== undefined) command.option('--limit <n>', 'How many', readLimit, limit)
  for (const option of extra.options?.() ?? []) command.addOption(option)
  if ((extra.effect ?? form.effect) !== undefined) command.option('--yes', 'Do not ask')
  if (extra.help !== undefined) command.addHelpText('after', extra.help)
  command.example(`${words} ${makeExample(variants)}`.trim())
  command.answers(async (...given: unknown[]) => {
    const raw = given.at(-1) as Record<string, unknown>
    const said = new Map(command.options.map((option) => [option.name(), raw[option.attributeName()]]))
    const named = [...fields.keys()].filter((name) => said.get(name) !== undefined)
    const variant = chooseVariant(command, variants, named)
    const input: Input = { ...variant.form.values }
    for (const [index, { name }] of args.entries()) input[name] = (given[index] as { value: unknown }).value
    for (const name of named) Object.assign(input, setField(variant.options.get(name)!, said.get(name)))
    for (const [name, [, set]] of Object.entries(flags)) if (said.get(name)) Object.assign(input, set)
    if (variant.operation.method === 'PATCH' && Object.keys(input).length === args.length)
      command.error(
        `error: give at least one of ${listOptions([...fields.keys(), ...Object.keys(flags)], ', ')}`,
      )
    const wrong = extra.refuse?.(input, raw)
    if (wrong !== undefined && wrong !== null) command.error(`error: ${wrong}`)
    const effect = raw.yes ? null : await describeEffect(variant, extra, input, context)
    if (effect !== null) {
      const field = findTypedField(variant.operation)
      const known: Input = { ...input, ...effect.subject }
      await assertAgreed(context.wiring, effect.text, {
        typed: field === undefined ? null : printable(String(known[field])),
      })
    }
    const prepared = { ...input, ...(await extra.prepare?.(input, raw, context)) }
    try {
      const { runOperation } = await import('./run.ts')
      const answer = await runOperation(variant.operation, prepared, context, {
        by: by === undefined ? null : String(raw.by),
        ...(limit !== undefined && { most: raw.limit as number }),
      })
      return extra.after?.(answer, raw, context) ?? present(answer, variant.form, extra.shape)
    } catch (error) {
      throw withOptionNames(error, variant, (message) => extra.isWrongUsage && command.error(message))
    }
  })
}

const isAlwaysRequired = (name: string, variants: readonly Variant[]) =>
  variants.every(({ required }) => required.includes(name))

const listOptions = (names: readonly string[], separator = ' and '): string =>
  names.map((name) => `--${name}`).join(separator)

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

function makeArgument(field: Field, group: string): Argument {
  const name = field.name === 'account_id' ? 'account' : field.name
  const text = describeOption(field) || `${capitalize(name === 'id' ? (NOUNS[group] ?? group) : name)} id`
  return new Argument(`<${name}>`, text).argParser((given) => readValue(field, given))
}

function makeOption(name: string, field: Field, isRequired: boolean): Option {
  const text = `${describeOption(field) || `${capitalize(name)} id`}${isRequired ? ' (required)' : ''}`
  if (isFlag(field)) return new Option(`--${name}`, text)
  const option = new Option(`--${name} ${describeValue(field)}`, text)
  const choices = listChoices(field)
  if (choices !== null) option.choices(choices)
  return option.argParser((given) => readValue(field, given)).makeOptionMandatory(isRequired)
}

/** A flag of a query is the text `true`. */
const setField = ({ name, base, defaultValue }: Field, value: unknown): Input => ({
  [name]:
    defaultValue === false
      ? base.def.type === 'boolean'
        ? true
        : 'true'
      : (value as { value: unknown }).value,
})

/** Returns a command line: ids and required options, then the example of the form. */
function makeExample(variants: readonly Variant[]): string {
  const { args, form, required } = variants[0]!
  const shown = variants.find((variant) => variant.form.example !== undefined)?.form.example ?? ''
  const given = shown
    .split(/(?:^| )--/)[0]!
    .split(' ')
    .filter((word) => word !== '').length
  const needed = [...required.filter((name) => isAlwaysRequired(name, variants)), ...(form.by ? ['by'] : [])]
  return [
    ...args.slice(0, args.length - given).map(() => 'ID'),
    ...needed.filter((name) => !shown.includes(`--${name} `)).map((name) => `--${name} ID`),
    shown,
  ].join(' ')
}

/** Returns the operation that takes all the given options, and needs no others. */
function chooseVariant(command: Command, variants: readonly Variant[], named: readonly string[]): Variant {
  const able = variants.filter(({ options }) => named.every((name) => options.has(name)))
  const lacking = ({ required }: Variant) => required.filter((name) => !named.includes(name))
  const chosen = able.find((variant) => lacking(variant).length === 0)
  if (chosen !== undefined) return chosen
  const odd = listOptions(named.filter((name) => variants.some(({ options }) => !options.has(name))))
  return command.error(
    able[0] === undefined
      ? `error: ${odd} do not go together`
      : `error: ${odd} needs ${listOptions(lacking(able[0]))}`,
  )
}

/** Returns what the command would do, to ask before it does; null if there is nothing to ask. */
async function describeEffect(
  { operation, form: { effect } }: Variant,
  extra: Extra,
  input: Input,
  context: Context,
): Promise<Effect | null> {
  if (extra.effect !== undefined) return extra.effect(input, context)
  if (effect === undefined) return null
  const typed = findTypedField(operation)
  const named = [...effect.matchAll(FIELD_PATTERN)].map(([, name = '']) => name)
  const isKnown = [...named, ...(typed === undefined ? [] : [typed])].every((name) => name in input)
  const subject = isKnown ? {} : await readSubject(operation, extra, input, context)
  const known: Input = { ...subject, ...input }
  return { text: effect.replace(FIELD_PATTERN, (_, name: string) => printable(String(known[name]))), subject }
}

/** Reads what an operation is about. */
async function readSubject(
  operation: Operation,
  extra: Extra,
  input: Input,
  context: Context,
): Promise<object> {
  if (extra.subject !== undefined) return extra.subject(input, context)
  const path = operation.path.replace(/(\{id\}).*/, '$1')
  const show = OPERATIONS.find((other) => other.method === 'GET' && other.path === path)!
  const { runOperation } = await import('./run.ts')
  const subject = await runOperation(show, { id: input.id }, context)
  return extra.shape?.(subject) ?? subject
}

/** Returns the field that is typed to confirm the operation; undefined if a yes is enough. */
const findTypedField = ({ name }: Operation): string | undefined =>
  (TYPED_TO_CONFIRM as Readonly<Record<string, string>>)[name]

/** Shows an answer: a list as a table, all else field by field. */
function present(
  answer: JsonObject,
  { columns, nulls }: CommandForm,
  shape: NonNullable<Extra['shape']> = (record) => record,
): Answer {
  const { data } = answer
  const fields = columns === undefined ? null : split(columns)
  const shown = (record: JsonObject): JsonObject =>
    Object.fromEntries(
      (fields ?? Object.keys(record)).map((path): [string, Json] => {
        const [name = '', inner] = path.split('.')
        const value = inner === undefined ? record[name] : (record[name] as JsonObject)[inner]
        return [inner ?? name, inWords(inner ?? name, value ?? null, nulls)]
      }),
    )
  if (!Array.isArray(data)) return answerRecord(shape(answer), shown(shape(answer)))
  const json = data.map(shape)
  return answerTable(json, json.map(shown))
}

/** Returns the error with the name of the option instead of the field. */
function withOptionNames(
  error: unknown,
  { options }: Variant,
  refuse: (message: string) => unknown,
): unknown {
  if (!(error instanceof Failure) || error.code !== 'invalid_request') return error
  const [, field, rest] = /^(\w+)((?:\.\w+)*: .*)$/s.exec(error.message) ?? []
  const name = [...options].find(([, { name }]) => name === field)?.[0]
  const message = name === undefined ? error.message : `--${name}${rest}`
  refuse(`error: ${message}`)
  return new Error(message)
}
