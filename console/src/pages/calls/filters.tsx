/** The filters of the call log: one row, with suggestions from what the calls have. The URL keeps them. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { type RegisteredRouter, type RouteById, useNavigate } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useState } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { CONTROL } from '../../ui/form.tsx'
import { listNames, type Statuses } from '../../ui/states.tsx'
import { Filter, PeriodFilter } from '../filters.tsx'

type Search = RouteById<RegisteredRouter['routeTree'], '/signed-in/calls'>['types']['fullSearchSchema']
export type CallFilters = Readonly<Omit<Search, 'account' | 'call' | 'live'>>

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

export const describeStatuses = (): Statuses<LogRow['status']> => ({
  success: ['good', t('Success')],
  error: ['bad', t('Error')],
  interrupted: ['warn', t('Interrupted')],
  rejected: ['neutral', t('Rejected')],
})

/** Returns the filters as the API takes them: a day is one of the reader's time zone. */
export const toCallQuery = (filters: CallFilters): CallFilters => ({ ...filters, ...toZoneWindow(filters) })

/** The filters that are chips, with their names. */
const nameChips = () =>
  ({
    model: t('Model'),
    model_part: t('Model contains'),
    key_id: t('Key'),
    key_part: t('Key contains'),
    error_code: t('Error code'),
    session_id: t('Session'),
    ref: t('Request or task'),
    unit_type: t('Kind'),
    order: t('Order'),
  }) as const

type Chip = keyof ReturnType<typeof nameChips>

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
const ID = /^(req|vid|mus|spc|img|ava|voi|asr)_/i

/** Returns what the reader may mean: values that calls have, and parts of names. */
function useSuggestions(typed: string, { filters, rows }: AddFilterProps): SuggestionGroup[] {
  const { account_id, role } = useAccount()
  const { period, from, to } = toCallQuery(filters)
  const values = useGet('listCallValues', { account_id, period, from, to } as never).data
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
  const groups = useSuggestions(typed, { filters, rows })
  const change = useChangeSearch()
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
        aria-label={t('Add a filter')}
        placeholder={t('Filter by model, key, error, session or id')}
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
    return chip === 'key_id' ? (keyNames.get(value) ?? value) : value
  }
  return (Object.keys(names) as Chip[]).map((chip) => {
    const value = filters[chip]
    if (value === undefined) return null
    const text = `${names[chip]}: ${print(chip, value)}`
    return (
      <span
        key={chip}
        className="inline-flex h-9 max-w-full items-center rounded-full border border-accent bg-accent-wash pl-3 text-accent text-sm"
      >
        <span className="truncate">{text}</span>
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
