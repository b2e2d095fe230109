/** The filters of the call log. All of them are in the URL. */
import { useLingui } from '@lingui/react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { keyNamesQuery } from '../../api/key-names.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, SelectField } from '../../ui/field.tsx'
import { type Period, PeriodFields } from '../period.tsx'

export interface CallFilters extends Period {
  readonly model?: string
  readonly status?: string
  readonly key_id?: string
  readonly unit_type?: string
  readonly error_code?: string
  readonly ref?: string
  readonly order?: string
}

const STATUSES = ['success', 'error', 'interrupted', 'rejected'] as const
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

/** Returns the names of the states, in the language of the page. */
export const statusNames = (): Readonly<Record<(typeof STATUSES)[number], string>> => ({
  success: t('Success'),
  error: t('Error'),
  interrupted: t('Interrupted'),
  rejected: t('Rejected'),
})

interface FiltersProps {
  readonly accountId: string
  readonly filters: CallFilters
}

/** The filters that are typed are applied together: each of them is a query. */
function TypedFilters({ filters, onApply }: { filters: CallFilters; onApply(filters: CallFilters): void }) {
  const [model, setModel] = useState(filters.model ?? '')
  const [errorCode, setErrorCode] = useState(filters.error_code ?? '')
  const [ref, setRef] = useState(filters.ref ?? '')
  const apply = (event: FormEvent) => {
    event.preventDefault()
    onApply({ model: model.trim(), error_code: errorCode.trim(), ref: ref.trim() })
  }
  return (
    <form onSubmit={apply} className="contents">
      <Field
        label={t('Request or task id')}
        value={ref}
        placeholder="req_…"
        onChange={(event) => setRef(event.target.value)}
      />
      <Field
        label={t('Model')}
        value={model}
        placeholder="demo-chat"
        onChange={(event) => setModel(event.target.value)}
      />
      <Field
        label={t('Error code')}
        value={errorCode}
        placeholder="upstream_error"
        onChange={(event) => setErrorCode(event.target.value)}
      />
      <div className="flex items-end">
        <Button type="submit" kind="primary">
          {t('Apply')}
        </Button>
      </div>
    </form>
  )
}

export function Filters({ accountId, filters }: FiltersProps) {
  useLingui()
  const navigate = useNavigate()
  const keys = useQuery(keyNamesQuery(accountId))
  const changeSearch = useChangeSearch()
  const change = (changes: CallFilters) => changeSearch({ ...changes })
  const clear = () =>
    void navigate({ to: '.', search: ({ account }) => (account === undefined ? {} : { account }) })
  const names = statusNames()
  return (
    <section
      aria-label={t('Filters')}
      className="mb-4 grid grid-cols-2 gap-3 rounded-lg border border-line bg-surface p-3 md:grid-cols-4 xl:grid-cols-6"
    >
      <PeriodFields value={filters} hasAll onChange={change} />
      <SelectField
        label={t('State')}
        value={filters.status ?? ''}
        onChange={(event) => change({ status: event.target.value })}
      >
        <option value="">{t('All')}</option>
        <option value="error,interrupted,rejected">{t('All but success')}</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {names[status]}
          </option>
        ))}
      </SelectField>
      <SelectField
        label={t('Key')}
        value={filters.key_id ?? ''}
        onChange={(event) => change({ key_id: event.target.value })}
      >
        <option value="">{t('All')}</option>
        {keys.data?.data.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </SelectField>
      <SelectField
        label={t('Kind')}
        value={filters.unit_type ?? ''}
        onChange={(event) => change({ unit_type: event.target.value })}
      >
        <option value="">{t('All')}</option>
        {UNIT_TYPES.map((unit) => (
          <option key={unit} value={unit}>
            {unit}
          </option>
        ))}
      </SelectField>
      <SelectField
        label={t('Order')}
        value={filters.order ?? 'desc'}
        onChange={(event) => change({ order: event.target.value })}
      >
        <option value="desc">{t('Newest first')}</option>
        <option value="asc">{t('Oldest first')}</option>
      </SelectField>
      <TypedFilters
        key={[filters.model, filters.error_code, filters.ref].join('\n')}
        filters={filters}
        onApply={change}
      />
      <div className="flex items-end">
        <Button onClick={clear}>{t('Clear')}</Button>
      </div>
    </section>
  )
}
