/** The filters of the call log: one row, with suggestions from what the calls have. The URL keeps them. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { useNavigate } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useRef, useState } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { printDuration, printExact } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { CONTROL } from '../../ui/form.tsx'
import { useShortcuts } from '../../ui/shortcuts.ts'
import { listNames } from '../../ui/states.tsx'
import { Filter, PeriodFilter } from '../filters.tsx'
import { type CallFilters, describeStatuses, toCallQuery } from './query.ts'

const UNIT_TYPES = [
  'chat',
  'image',
  'video',
  'music',
  'audio',
  'avatar',
  'voice',
  'search',
  'transcript',
] as const

/** The filters that are chips, with their names. */
const nameChips = () =>
  ({
    model: t('Model'),
    model_part: t('Model contains'),
    key_id: t('Key'),
    key_part: t('Key contains'),
    error_code: t('Error code'),
    not_model: t('Model is not'),
    not_error_code: t('Error code is not'),
    cost_above: t('Cost in credits above'),
    latency_above_ms: t('Longer than'),
    session_id: t('Session'),
    ref: t('Request or task'),
    unit_type: t('Kind'),
    order: t('Order'),
  }) as const

type Chip = keyof ReturnType<typeof nameChips>

/** The filter that keeps what another one leaves out. */
const OPPOSITES: { readonly [Name in Chip]?: Chip } = {
  model: 'not_model',
  not_model: 'model',
  error_code: 'not_error_code',
  not_error_code: 'error_code',
}

/** Bounds to choose from before a number is typed. */
const BOUNDS = { latency_above_ms: ['1000', '10000'], cost_above: ['1', '100'] } as const
type Bound = keyof typeof BOUNDS
/** Such as `500`, `> 0.25` and `1.5 s`. */
const NUMBER = /^>?\s*(\d{1,9}(?:\.\d{1,8})?)\s*(ms|s)?$/

/** Returns the bounds that a number may mean; without one, those to choose from. */
function readBounds(typed: string): { readonly [Name in Bound]: readonly string[] } {
  if (typed === '') return BOUNDS
  const [, number = '', unit] = NUMBER.exec(typed) ?? []
  if (number === '') return { latency_above_ms: [], cost_above: [] }
  const ms = Math.round(Number(number) * (unit === 's' ? MS_PER_SECOND : 1))
  return {
    latency_above_ms: unit !== undefined || !number.includes('.') ? [String(ms)] : [],
    cost_above: unit === undefined ? [number] : [],
  }
}

const printBound = (chip: Bound, value: string): string =>
  chip === 'cost_above' ? printExact(value) : printDuration(Number(value))

interface Suggestion {
  readonly chip: Chip
  readonly value: string
  /** Default: the value. */
  readonly label?: string
}

interface SuggestionGroup {
  readonly value: string
  readonly items: readonly Suggestion[]
}

const MAX_SUGGESTIONS = 8
const MS_PER_SECOND = 1000
const ID = /^(req|vid|mus|spc|img|ava|voi|asr)_/i

/** Returns what the reader may mean: values that calls have, and parts of names. */
function useSuggestions(typed: string, isOpen: boolean, { filters, rows }: AddFilterProps) {
  const { account_id, role } = useAccount()
  const { period, from, to } = toCallQuery(filters)
  const values = useGet('listCallValues', { account_id, period, from, to } as never, { enabled: isOpen }).data
  const names = nameChips()
  const text = typed.trim()
  const has = ({ chip, value, label = value }: Suggestion) =>
    label.toLowerCase().includes(text.toLowerCase()) && filters[chip] !== value
  const list = (chip: Chip, all: readonly (string | Suggestion)[]): SuggestionGroup => ({
    value: names[chip],
    items: all
      .map((one) => (typeof one === 'string' ? { chip, value: one } : one))
      .filter(has)
      .slice(0, MAX_SUGGESTIONS),
  })
  const bounds = readBounds(text)
  const listBounds = (chip: Bound): SuggestionGroup => ({
    value: names[chip],
    items: bounds[chip].map((value) => ({ chip, value, label: `${names[chip]} ${printBound(chip, value)}` })),
  })
  const parts: Suggestion[] =
    text === ''
      ? []
      : ID.test(text)
        ? [{ chip: 'ref', value: text }]
        : [
            { chip: 'model_part', value: text, label: t('Model contains “{text}”', { text }) },
            ...(role === 'billing'
              ? []
              : [{ chip: 'key_part', value: text, label: t('Key contains “{text}”', { text }) } as const]),
          ]
  // The newest calls reach the sums after a second; the page has them already.
  const join = (chip: 'model' | 'error_code' | 'session_id', counted: readonly string[] = []) =>
    list(chip, [...new Set([...counted, ...rows.flatMap((row) => row[chip] ?? [])])])
  const keyNames = new Map([
    ...(values?.keys ?? []).map(({ id, name }) => [id, name] as const),
    ...rows.map(({ key_id, key_name }) => [key_id, key_name] as const),
  ])
  const keys = [...keyNames].map(([value, label]) => ({ chip: 'key_id', value, label }) as const)
  const groups = [
    { value: t('Search'), items: parts },
    join('model', values?.models),
    list('key_id', role === 'billing' ? [] : keys),
    join('error_code', values?.error_codes),
    join('session_id', values?.session_ids),
    listBounds('latency_above_ms'),
    listBounds('cost_above'),
    list('unit_type', UNIT_TYPES),
    list('order', [{ chip: 'order', value: 'asc', label: t('Oldest first') }]),
  ]
  return groups.filter(({ items }) => items.length > 0)
}

interface AddFilterProps {
  readonly filters: CallFilters
  /** The calls on the page. */
  readonly rows: readonly LogRow[]
}

/** Finds a filter by any part of its value, and applies it. */
function AddFilter({ filters, rows }: AddFilterProps) {
  const [typed, setTyped] = useState('')
  // What calls have is read when someone looks for it.
  const [isUsed, setUsed] = useState(false)
  const groups = useSuggestions(typed, isUsed, { filters, rows })
  const change = useChangeSearch()
  const input = useRef<HTMLInputElement>(null)
  useShortcuts({ '/': () => input.current?.focus() })
  return (
    <Autocomplete.Root
      items={groups}
      mode="none"
      openOnInputClick
      autoHighlight="always"
      value={typed}
      onValueChange={(text, { reason }) => setTyped(reason === 'item-press' ? '' : text)}
      itemToStringValue={({ label, value }: Suggestion) => label ?? value}
    >
      <Autocomplete.Input
        ref={input}
        aria-keyshortcuts="/"
        aria-label={t('Add a filter')}
        placeholder={t('Filter by model, key, error, session or id')}
        onFocus={() => setUsed(true)}
        className={`${CONTROL} min-w-56 flex-1`}
      />
      <Autocomplete.Portal>
        <Autocomplete.Positioner sideOffset={4} align="start" className="z-10">
          <Autocomplete.Popup className="max-h-96 w-(--anchor-width) min-w-64 overflow-y-auto rounded-lg border border-line bg-surface p-1 shadow-xl">
            <Autocomplete.List>
              {(group: SuggestionGroup) => (
                <Autocomplete.Group key={group.value} items={group.items}>
                  <Autocomplete.GroupLabel className="px-2 py-1 text-quiet text-xs">
                    {group.value}
                  </Autocomplete.GroupLabel>
                  <Autocomplete.Collection>
                    {(one: Suggestion) => (
                      <Autocomplete.Item
                        key={`${one.chip} ${one.value}`}
                        value={one}
                        onClick={() => change({ [one.chip]: one.value })}
                        className="cursor-pointer truncate rounded-md px-2 py-1.5 data-highlighted:bg-accent-wash data-highlighted:text-accent"
                      >
                        {one.label ?? one.value}
                      </Autocomplete.Item>
                    )}
                  </Autocomplete.Collection>
                </Autocomplete.Group>
              )}
            </Autocomplete.List>
          </Autocomplete.Popup>
        </Autocomplete.Positioner>
      </Autocomplete.Portal>
    </Autocomplete.Root>
  )
}

interface ChipsProps {
  readonly filters: CallFilters
  /** Names of keys by their ids. */
  readonly keyNames: ReadonlyMap<string, string>
}

function Chips({ filters, keyNames }: ChipsProps) {
  const change = useChangeSearch()
  const names = nameChips()
  const print = (chip: Chip, value: string): string => {
    if (chip === 'order') return value === 'asc' ? t('Oldest first') : t('Newest first')
    if (chip === 'cost_above' || chip === 'latency_above_ms') return printBound(chip, value)
    return chip === 'key_id' ? (keyNames.get(value) ?? value) : value
  }
  return (Object.keys(names) as Chip[]).map((chip) => {
    const value = filters[chip]
    if (value === undefined) return null
    const text = `${names[chip]}: ${print(chip, value)}`
    const opposite = OPPOSITES[chip]
    return (
      <span
        key={chip}
        className="inline-flex h-9 max-w-full items-center rounded-full border border-accent bg-accent-wash pl-3 text-accent text-sm"
      >
        {opposite === undefined ? (
          <span className="truncate">{text}</span>
        ) : (
          <button
            type="button"
            className="truncate hover:underline"
            title={t('Show the calls that this filter leaves out')}
            onClick={() => change({ [chip]: undefined, [opposite]: value })}
          >
            {text}
          </button>
        )}
        <button
          type="button"
          aria-label={t('Remove the filter {filter}', { filter: text })}
          className="rounded-full p-2"
          onClick={() => change({ [chip]: undefined })}
        >
          <X aria-hidden size={14} />
        </button>
      </span>
    )
  })
}

export function Filters({ filters, keyNames, rows }: ChipsProps & AddFilterProps) {
  const navigate = useNavigate()
  const clear = () => void navigate({ to: '.', search: ({ account }) => ({ account }) })
  return (
    <section aria-label={t('Filters')} className="mb-4 flex flex-wrap items-end gap-2">
      <PeriodFilter value={filters} hasAll />
      <Filter
        name="status"
        label={t('Status')}
        value={filters.status}
        options={[['error,interrupted,rejected', t('All but success')], ...listNames(describeStatuses())]}
      />
      <AddFilter filters={filters} rows={rows} />
      <Chips filters={filters} keyNames={keyNames} />
      {Object.keys(filters).length > 0 && (
        <Button kind="quiet" onClick={clear}>
          {t('Clear')}
        </Button>
      )}
    </section>
  )
}
