/** The filters of a list. The URL keeps them. */
import { type ReactNode, useState } from 'react'
import { type KeyNames, MAX_NAMED_KEYS } from '../api/key-names.ts'
import { useSession } from '../api/session.ts'
import { useChangeSearch } from '../change-search.ts'
import { nameInZone, printDay, printTime } from '../format.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Field, Form, SelectField } from '../ui/form.tsx'

export const FilterPanel = ({ children }: { readonly children: ReactNode }) => (
  <section
    aria-label={t('Filters')}
    className="mb-4 grid grid-cols-2 gap-3 rounded-lg border border-line bg-surface p-3 md:grid-cols-4 xl:grid-cols-6"
  >
    {children}
  </section>
)

interface FilterProps {
  /** The search parameter. */
  readonly name: string
  readonly label: string
  readonly value: string | undefined
  readonly options: Iterable<readonly [value: string, name: string]>
}

/** Chooses one option, or all. */
export function Filter({ name, label, value = '', options }: FilterProps) {
  const change = useChangeSearch()
  return (
    <SelectField
      label={label}
      value={value}
      onText={(text) => change({ [name]: text })}
      options={[['', t('All')], ...options]}
    />
  )
}

interface KeyFilterProps {
  /** Undefined while they are loading. */
  readonly names: KeyNames | undefined
  readonly value: string | undefined
  /** True if the user may choose all keys. */
  readonly hasAll?: boolean
}

export function KeyFilter({ names, value = '', hasAll = true }: KeyFilterProps) {
  const change = useChangeSearch()
  const keys = names?.keys ?? []
  // The URL may name a key that is not listed: it is shown nevertheless.
  const isOther = value !== '' && !keys.some(({ id }) => id === value)
  const isCut = names?.isWhole === false
  return (
    <SelectField
      label={t('Key')}
      hint={
        isCut
          ? t('These are the first {count} keys. Search finds any other by its id.', {
              count: MAX_NAMED_KEYS,
            })
          : undefined
      }
      value={value}
      onText={(text) => change({ key_id: text })}
      options={[
        ...(hasAll ? [['', t('All')] as const] : []),
        ...(isOther ? [[value, value] as const] : []),
        ...keys.map(({ id, name }) => [id, name] as const),
      ]}
    />
  )
}

const INSTALLATION = 'installation'

/** Returns whether the page shows the whole installation. @param scope the search parameter */
export const useIsWhole = (scope: string | undefined): boolean =>
  useSession().user.installation_role !== null && scope === INSTALLATION

interface ScopeFilterProps {
  readonly value: string | undefined
  /** Search parameters that do not apply to the other scope. */
  readonly clears?: readonly string[]
}

/** Chooses between the account and the whole installation, for those who may read it. */
export function ScopeFilter({ value = '', clears = [] }: ScopeFilterProps) {
  const change = useChangeSearch()
  if (useSession().user.installation_role === null) return null
  return (
    <SelectField
      label={t('Scope')}
      value={value}
      onText={(scope) => change({ scope, ...Object.fromEntries(clears.map((name) => [name, undefined])) })}
      options={[
        ['', t('This account')],
        [INSTALLATION, t('The installation')],
      ]}
    />
  )
}

/** The search of a list. @param value the present search parameter `search` */
export function SearchForm({ label, value }: { readonly label: string; readonly value: string | undefined }) {
  const [typed, setTyped] = useState(value ?? '')
  const change = useChangeSearch()
  return (
    <Form className="mb-4 flex max-w-md items-end gap-2" onSubmit={() => change({ search: typed })}>
      <div className="flex-1">
        <Field label={label} type="search" value={typed} onText={setTyped} />
      </div>
      <Button type="submit">{t('Search')}</Button>
    </Form>
  )
}

/** A period as the API names it. */
export interface Period {
  readonly period?: string
  readonly from?: string
  readonly to?: string
}

interface PeriodFilterProps {
  readonly value: Period
  /** True if the user may choose all time. */
  readonly hasAll?: boolean
  /** Without a choice. */
  readonly usual?: 'all' | '30d'
}

export function PeriodFilter({
  value: { period, from, to },
  hasAll = false,
  usual = '30d',
}: PeriodFilterProps) {
  const change = useChangeSearch()
  // A part of a chart has instants, not days.
  const isPart = from?.includes('T') === true && to !== undefined
  const isRange = !isPart && (from !== undefined || to !== undefined)
  const today = printDay(new Date().toISOString())
  const range = { period: '', from: from?.slice(0, 10) ?? '', to: to?.slice(0, 10) ?? '' }
  return (
    <>
      <SelectField
        label={nameInZone(t('Period'))}
        value={isPart ? 'part' : isRange ? 'range' : (period ?? usual)}
        onText={(text) =>
          change(
            text === 'range' ? { period: '', from: today, to: today } : { period: text, from: '', to: '' },
          )
        }
        options={[
          ...(isPart ? [['part', `${printTime(from)} – ${printTime(to)}`] as const] : []),
          ['today', t('Today')],
          ['7d', t('7 days')],
          ['30d', t('30 days')],
          ['this_month', t('This month')],
          ...(hasAll ? [['all', t('All time')] as const] : []),
          ['range', t('From … to …')],
        ]}
      />
      {isRange &&
        (['from', 'to'] as const).map((end) => (
          <Field
            key={end}
            label={end === 'from' ? t('From') : t('To')}
            type="date"
            value={range[end]}
            onText={(text) => change({ ...range, [end]: text })}
          />
        ))}
    </>
  )
}

/** Returns a function that shows the part of a chart that its reader has dragged over, epoch seconds. */
export function useZoom() {
  const change = useChangeSearch()
  const print = (seconds: number) => new Date(seconds * 1000).toISOString()
  return (from: number, to: number): void => change({ period: '', from: print(from), to: print(to) })
}
