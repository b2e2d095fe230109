/** The filters of calls: one row, with suggestions from what the calls have. The URL keeps them. */
import { useNavigate } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useChangeSearch } from '../../change-search.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button, type ButtonProps } from '../../ui/button.tsx'
import { CONTROL } from '../../ui/form.tsx'
import { useShortcuts } from '../../ui/shortcuts.ts'
import { listNames } from '../../ui/states.tsx'
import { whenIdle } from '../../when-idle.ts'
import { Filter, PeriodFilter } from '../filters.tsx'
import { type AddFilterProps, type Chip, nameChips, printBound } from './chips.ts'
import { type CallFilters, describeStatuses } from './query.ts'
import type { Suggestions } from './suggestions.tsx'
import { useCallValues } from './values.ts'

/** The filter that keeps what another one leaves out. */
const OPPOSITES: { readonly [Name in Chip]?: Chip } = {
  model: 'not_model',
  not_model: 'model',
  error_code: 'not_error_code',
  not_error_code: 'error_code',
}

const loadSuggestions = async () => (await import('./suggestions.tsx')).Suggestions

/** Finds a filter by any part of its value, and applies it. It takes what is typed before its suggestions are loaded. */
function AddFilter(props: AddFilterProps) {
  const [typed, setTyped] = useState('')
  const [Loaded, setLoaded] = useState<typeof Suggestions | null>(null)
  const [isUsed, setUsed] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  useShortcuts({ '/': () => box.current?.querySelector('input')?.focus() })
  useEffect(() => {
    const load = () =>
      void loadSuggestions().then(
        (loaded) => setLoaded(() => loaded),
        () => undefined,
      )
    if (!isUsed) return whenIdle(load)
    load()
    return undefined
  }, [isUsed])
  const field = {
    'aria-label': t('Add a filter'),
    'aria-keyshortcuts': '/',
    placeholder: props.isWhole
      ? t('Filter by account, channel, model, error or id')
      : t('Filter by model, key, error, session or id'),
    className: CONTROL,
  }
  return (
    <div ref={box} className="min-w-56 flex-1">
      {Loaded === null ? (
        <input
          role="combobox"
          aria-expanded={false}
          {...field}
          value={typed}
          onFocus={() => setUsed(true)}
          onBlur={() => setUsed(false)}
          onChange={({ target }) => setTyped(target.value)}
        />
      ) : (
        <Loaded {...props} typed={typed} onTyped={setTyped} isOpen={isUsed} field={field} />
      )}
    </div>
  )
}

interface ChipsProps {
  readonly filters: CallFilters
  /** Names of keys and accounts by their ids. */
  readonly idNames: ReadonlyMap<string, string>
}

function Chips({ filters, idNames }: ChipsProps) {
  const change = useChangeSearch()
  const names = nameChips()
  const print = (chip: Chip, value: string): string => {
    if (chip === 'order') return value === 'asc' ? t('Oldest first') : t('Newest first')
    if (chip === 'cost_above' || chip === 'latency_above_ms') return printBound(chip, value)
    return chip === 'key_id' || chip === 'account_id' ? (idNames.get(value) ?? value) : value
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

/** Returns whether anything is filtered by. @param usual what is filtered by without a choice */
export const hasFilters = (filters: CallFilters, usual: CallFilters = {}): boolean =>
  (Object.keys(filters) as (keyof CallFilters)[]).some((name) => filters[name] !== usual[name])

export function ClearFilters({ children = t('Clear all filters'), ...button }: ButtonProps) {
  const navigate = useNavigate()
  return (
    <Button {...button} onClick={() => void navigate({ to: '.', search: ({ account }) => ({ account }) })}>
      {children}
    </Button>
  )
}

interface FiltersProps extends ChipsProps, AddFilterProps {
  /** What is filtered by without a choice. */
  readonly usual?: CallFilters
}

/** Returns the names of the statuses, with the number of calls once the page is idle. */
function useStatusNames(filters: CallFilters, isWhole: boolean) {
  const [isIdle, setIdle] = useState(false)
  useEffect(() => whenIdle(() => setIdle(true)), [])
  const statuses = useCallValues(filters, isWhole, isIdle)?.statuses
  const count = (names: readonly string[]) =>
    (statuses ?? []).reduce((sum, { value, calls }) => (names.includes(value) ? sum + calls : sum), 0)
  const names: readonly (readonly [value: string, name: string])[] = [
    ['error,interrupted', t('Failed')],
    ['error,interrupted,rejected', t('All but success')],
    ...listNames(describeStatuses()),
  ]
  if (statuses === undefined) return names
  return names.map(([value, name]) => [value, `${name} (${printNumber(count(value.split(',')))})`] as const)
}

export function Filters({ filters, usual = {}, idNames, ...rest }: FiltersProps) {
  const statuses = useStatusNames(filters, rest.isWhole === true)
  return (
    <section aria-label={t('Filters')} className="mb-4 flex flex-wrap items-end gap-2">
      <PeriodFilter value={filters} hasAll />
      <Filter name="status" label={t('Status')} value={filters.status} options={statuses} />
      <AddFilter filters={filters} {...rest} />
      <Chips filters={filters} idNames={idNames} />
      {hasFilters(filters, usual) && <ClearFilters kind="quiet">{t('Clear')}</ClearFilters>}
    </section>
  )
}
