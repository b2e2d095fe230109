/** Forms of one model and one channel. They change the text beside them, field by field. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, type InputOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, Field, SelectField, TextAreaField } from '../../ui/form.tsx'

export type Entry = AnswerOf<'editConfiguration'>['models'][number]
type Edit = NonNullable<InputOf<'editConfiguration'>['edits']>[number]
export type EntryList = 'models' | 'channels'

/** How the text of a field becomes its value. Lists are separated by commas; a map has one `name: value` a line. */
type Kind = 'text' | 'count' | 'flag' | 'list' | 'map'

interface FieldSpec {
  readonly path: readonly string[]
  readonly label: string
  readonly hint?: string
  readonly kind: Kind
  readonly options?: readonly string[]
}

const UNITS = ['1M_tokens', 'image', 'second', 'generation', '1000_characters', 'call', 'task']

const listModelFields = (): readonly FieldSpec[] => [
  { path: ['display_name'], label: t('Display name'), kind: 'text' },
  { path: ['aliases'], label: t('Aliases'), hint: t('Separated by commas.'), kind: 'list' },
  { path: ['callable'], label: t('Callable'), kind: 'flag' },
  { path: ['context_window'], label: t('Context window, tokens'), kind: 'count' },
  { path: ['max_output_tokens'], label: t('Most output tokens'), kind: 'count' },
  { path: ['default_max_tokens'], label: t('Output tokens without a limit'), kind: 'count' },
  { path: ['pricing', 'unit'], label: t('Price per'), kind: 'text', options: UNITS },
  { path: ['pricing', 'input'], label: t('Input price'), kind: 'text' },
  { path: ['pricing', 'output'], label: t('Output price'), kind: 'text' },
  { path: ['pricing', 'cached_input'], label: t('Cached input price'), kind: 'text' },
  { path: ['pricing', 'cache_write'], label: t('Cache write price'), kind: 'text' },
  { path: ['pricing', 'per_unit'], label: t('Price per unit'), kind: 'text' },
  { path: ['pricing', 'server_tool_call'], label: t('Price per tool call'), kind: 'text' },
  {
    path: ['pricing', 'discount'],
    label: t('Promotion'),
    hint: t('A factor on the price, such as 0.8.'),
    kind: 'text',
  },
  {
    path: ['pricing', 'discount_until'],
    label: t('Promotion ends'),
    hint: '2026-12-31T00:00:00Z',
    kind: 'text',
  },
]

const listChannelFields = (): readonly FieldSpec[] => [
  { path: ['provider'], label: t('Provider'), kind: 'text' },
  { path: ['protocol'], label: t('Protocol'), kind: 'text' },
  { path: ['base_url'], label: t('Base URL'), kind: 'text' },
  {
    path: ['api_key'],
    label: t('API key'),
    hint: t('A variable such as {example} keeps the key out of the file.', { example: '${EXAMPLE_API_KEY}' }),
    kind: 'text',
  },
  {
    path: ['models'],
    label: t('Models'),
    hint: t("One line for each: the model of the catalog, a colon, the provider's name of it."),
    kind: 'map',
  },
  { path: ['priority'], label: t('Priority'), hint: t('Lower first.'), kind: 'count' },
  {
    path: ['weight'],
    label: t('Weight'),
    hint: t('The share among channels of one priority.'),
    kind: 'count',
  },
  { path: ['timeout_seconds'], label: t('Timeout, seconds'), kind: 'count' },
]

export const listFields = (list: EntryList) => (list === 'models' ? listModelFields() : listChannelFields())

const readValue = (entry: Entry, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], entry)

function printText(value: unknown, kind: Kind): string {
  if (value === undefined || value === null) return ''
  if (kind === 'list') return (value as readonly string[]).join(', ')
  if (kind === 'map')
    return Object.entries(value as object)
      .map(([name, one]) => `${name}: ${one}`)
      .join('\n')
  return String(value)
}

function parseValue(text: string, kind: Kind): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (kind === 'count') return Number(trimmed)
  if (kind === 'flag') return trimmed === 'true'
  if (kind === 'list')
    return trimmed
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '')
  if (kind === 'map')
    return Object.fromEntries(
      trimmed.split('\n').map((line) => {
        const at = line.indexOf(':')
        return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
      }),
    )
  return trimmed
}

const toName = ({ path }: FieldSpec): string => path.join('.')

interface EntryFormProps {
  readonly list: EntryList
  /** Null: a new entry. */
  readonly entry: Entry | null
  /** The text that is edited. */
  readonly text: string
  onEdited(text: string): void
  onClose(): void
}

export function EntryForm({ list, entry, text, onEdited, onClose }: EntryFormProps) {
  const specs = listFields(list)
  const id = entry === null ? null : String(entry.id)
  const form = useFields<Record<string, string>>(null, () => ({
    id: id ?? '',
    ...Object.fromEntries(
      specs.map((spec) => [toName(spec), printText(entry && readValue(entry, spec.path), spec.kind)]),
    ),
  }))
  const { values, saved } = form
  const makeEdits = (): Edit[] => {
    const changed = specs.filter((spec) => values[toName(spec)] !== saved[toName(spec)])
    const changes = changed.map((spec) => ({
      path: [...spec.path],
      value: parseValue(values[toName(spec)] ?? '', spec.kind),
    }))
    if (id !== null) return [{ kind: 'change', list, id, changes }]
    const added = { id: (values.id ?? '').trim() }
    return [{ kind: 'add', list, entry: changes.reduce(setIn, added as Record<string, unknown>) }]
  }
  const edit = useMutation({
    mutationFn: () => request('editConfiguration', { text, edits: makeEdits() }),
    onSuccess: (edited) => {
      onEdited(edited.text)
      onClose()
    },
  })
  const what = list === 'models' ? t('Model') : t('Channel')
  return (
    <Dialog
      isWide
      title={id ?? t('Add: {what}', { what })}
      description={t('This changes the text. Nothing is applied before you have seen the difference.')}
      onClose={onClose}
    >
      <DialogForm sends={edit} fields={form} submit={t('Change the text')}>
        {id === null && <Field label={t('Id')} required {...form.field('id')} />}
        <div className="grid gap-3 sm:grid-cols-2">
          {specs.map((spec) => (
            <SpecField
              key={toName(spec)}
              spec={spec}
              {...form.field(toName(spec))}
              value={values[toName(spec)] ?? ''}
            />
          ))}
        </div>
      </DialogForm>
    </Dialog>
  )
}

const setIn = (
  entry: Record<string, unknown>,
  { path: [name = '', ...rest], value }: { path: string[]; value: unknown },
): Record<string, unknown> => ({
  ...entry,
  [name]:
    rest.length === 0 ? value : setIn((entry[name] ?? {}) as Record<string, unknown>, { path: rest, value }),
})

interface SpecFieldProps {
  readonly spec: FieldSpec
  readonly name: string
  readonly value: string
  onText(text: string): void
}

function SpecField({ spec: { label, hint, kind, options }, ...field }: SpecFieldProps) {
  const [isOther] = useState(() => field.value !== '' && options?.includes(field.value) === false)
  if (kind === 'flag')
    return (
      <SelectField
        label={label}
        options={[
          ['', t('Default')],
          ['true', t('Yes')],
          ['false', t('No')],
        ]}
        {...field}
      />
    )
  if (options !== undefined && !isOther)
    return (
      <SelectField
        label={label}
        options={[['', '–'], ...options.map((one) => [one, one] as const)]}
        {...field}
      />
    )
  if (kind === 'map')
    return (
      <div className="sm:col-span-2">
        <TextAreaField isCode label={label} hint={hint} rows={5} {...field} />
      </div>
    )
  return (
    <Field
      label={label}
      hint={hint}
      inputMode={kind === 'count' ? 'numeric' : undefined}
      autoComplete="off"
      {...field}
    />
  )
}
