/** The input that finds a filter of calls, with suggestions from what the calls have. */
import { Autocomplete } from '@base-ui/react/autocomplete'
import { type ComponentProps, useLayoutEffect, useRef } from 'react'
import { UNIT_TYPES } from '../../../../schemas/call-log/words.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { type AddFilterProps, type Bound, type Chip, nameChips, printBound } from './chips.ts'
import { useCallValues } from './values.ts'

/** Bounds to choose from before a number is typed. */
const BOUNDS: { readonly [Name in Bound]: readonly string[] } = {
  latency_above_ms: ['1000', '10000'],
  cost_above: ['1', '100'],
}
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

interface Suggestion {
  readonly chip: Chip
  readonly value: string
  /** Default: the value. */
  readonly label?: string
  /** How many calls have it; undefined if that is not known. */
  readonly calls?: number
}

interface SuggestionGroup {
  readonly value: string
  readonly items: readonly Suggestion[]
}

const MAX_SUGGESTIONS = 8
const MS_PER_SECOND = 1000
/** Ids of calls and keys. */
const IDS: readonly (readonly [Chip, RegExp])[] = [
  ['ref', /^(req|vid|mus|spc|img|ava|voi|asr)_/i],
  ['key_id', /^key_/i],
]

/** Returns what the reader may mean: values that calls have, and parts of names. */
function useSuggestions({ typed, filters, isWhole = false, rows }: SuggestionsProps): SuggestionGroup[] {
  const { role } = useAccount()
  const text = typed.trim()
  const values = useCallValues(filters, isWhole)
  const once = { enabled: isWhole, refetchInterval: false } as const
  const accounts = useGet('listAccounts', { search: text, limit: MAX_SUGGESTIONS }, once).data?.data ?? []
  const channels = useGet('listChannels', {}, once).data?.data ?? []
  const names = nameChips()
  const seesKeys = isWhole || role !== 'billing'
  const has = ({ chip, value, label = '' }: Suggestion) =>
    `${label}\n${value}`.toLowerCase().includes(text.toLowerCase()) && filters[chip] !== value
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
  const [idChip] = IDS.find(([, form]) => form.test(text)) ?? []
  const parts: Suggestion[] =
    text === ''
      ? []
      : idChip !== undefined
        ? [{ chip: idChip, value: text }]
        : [
            { chip: 'model_part', value: text, label: t('Model contains “{text}”', { text }) },
            ...(seesKeys
              ? [{ chip: 'key_part', value: text, label: t('Key contains “{text}”', { text }) } as const]
              : []),
            { chip: 'session_id', value: text, label: t('Session is “{text}”', { text }) },
          ]
  // The newest calls reach the sums after a second; the page has them already.
  const join = (
    chip: 'channel_id' | 'model' | 'error_code' | 'session_id',
    counted: readonly Pick<Suggestion, 'value' | 'calls'>[] = [],
  ) => {
    const known = new Set(counted.map(({ value }) => value))
    const others = new Set(rows.flatMap((row) => row[chip] ?? []).filter((value) => !known.has(value)))
    return list(chip, [...counted.map((one) => ({ chip, ...one })), ...others])
  }
  const keyNames = new Map<string, Suggestion>([
    ...rows.map(({ key_id: value, key_name: label }) => [value, { chip: 'key_id', value, label }] as const),
    ...(values?.keys ?? []).map(
      ({ id: value, name: label, calls }) => [value, { chip: 'key_id', value, label, calls }] as const,
    ),
  ])
  const keys = [...keyNames.values()].toSorted((a, b) => (b.calls ?? 0) - (a.calls ?? 0))
  const groups = [
    { value: t('Search'), items: parts },
    list(
      'account_id',
      accounts.map(({ id, name }) => ({ chip: 'account_id', value: id, label: `${name} · ${id}` })),
    ),
    join(
      'channel_id',
      channels.map(({ id }) => ({ value: id })),
    ),
    join('model', values?.models),
    list('key_id', seesKeys ? keys : []),
    join('error_code', values?.error_codes),
    join('session_id', values?.session_ids),
    listBounds('latency_above_ms'),
    listBounds('cost_above'),
    list('unit_type', UNIT_TYPES),
    list('order', [{ chip: 'order', value: 'asc', label: t('Oldest first') }]),
  ]
  return groups.filter(({ items }) => items.length > 0)
}

interface SuggestionsProps extends AddFilterProps {
  readonly typed: string
  onTyped(text: string): void
  /** True if the input had the focus before there were suggestions. */
  readonly isOpen: boolean
  /** The properties of the input. */
  readonly field: ComponentProps<'input'>
}

export function Suggestions(props: SuggestionsProps) {
  const { typed, onTyped, isOpen, field } = props
  const groups = useSuggestions(props)
  const change = useChangeSearch()
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (isOpen) input.current?.focus()
  }, [isOpen])
  return (
    <Autocomplete.Root
      items={groups}
      mode="none"
      openOnInputClick
      autoHighlight="always"
      value={typed}
      defaultOpen={isOpen}
      onValueChange={(text, { reason }) => onTyped(reason === 'item-press' ? '' : text)}
      itemToStringValue={({ label, value }: Suggestion) => label ?? value}
    >
      <Autocomplete.Input ref={input} {...field} />
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
                        className="flex cursor-pointer items-baseline justify-between gap-3 rounded-md px-2 py-1.5 data-highlighted:bg-accent-wash data-highlighted:text-accent"
                      >
                        <span className="truncate">{one.label ?? one.value}</span>
                        {one.calls !== undefined && (
                          <span aria-hidden className="tabular text-quiet text-xs">
                            {printNumber(one.calls)}
                          </span>
                        )}
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
