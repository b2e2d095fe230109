/** The filters of the call log. The URL keeps them. */

import { type RegisteredRouter, type RouteById, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form, SelectField } from '../../ui/form.tsx'
import { listNames, type Statuses } from '../../ui/states.tsx'
import { Filter, FilterPanel, KeyFilter, PeriodFilter } from '../filters.tsx'

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

/** Typed filters are applied together: each change would be a query. */
function TypedFilters({ filters, onApply }: { filters: CallFilters; onApply(filters: CallFilters): void }) {
  const [model, setModel] = useState(filters.model ?? '')
  const [errorCode, setErrorCode] = useState(filters.error_code ?? '')
  const [ref, setRef] = useState(filters.ref ?? '')
  const [session, setSession] = useState(filters.session_id ?? '')
  const apply = () => {
    onApply({
      model: model.trim(),
      error_code: errorCode.trim(),
      ref: ref.trim(),
      session_id: session.trim(),
    })
  }
  return (
    <Form onSubmit={apply} className="contents">
      <Field label={t('Request or task id')} value={ref} placeholder="req_…" onText={setRef} />
      <Field label={t('Model')} value={model} placeholder="demo-chat" onText={setModel} />
      <Field label={t('Session')} value={session} placeholder="run 7" onText={setSession} />
      <Field label={t('Error code')} value={errorCode} placeholder="upstream_error" onText={setErrorCode} />
      <div className="flex items-end">
        <Button type="submit" kind="primary">
          {t('Apply')}
        </Button>
      </div>
    </Form>
  )
}

export function Filters({ filters }: { readonly filters: CallFilters }) {
  const { role } = useAccount()
  const navigate = useNavigate()
  const keys = useKeyNames()
  const changeSearch = useChangeSearch()
  const change = (changes: CallFilters) => changeSearch({ ...changes })
  const clear = () => void navigate({ to: '.', search: ({ account }) => ({ account }) })
  return (
    <FilterPanel>
      <PeriodFilter value={filters} hasAll />
      <Filter
        name="status"
        label={t('Status')}
        value={filters.status}
        options={[['error,interrupted,rejected', t('All but success')], ...listNames(describeStatuses())]}
      />
      {role !== 'billing' && <KeyFilter names={keys.data} value={filters.key_id} />}
      <Filter
        name="unit_type"
        label={t('Kind')}
        value={filters.unit_type}
        options={UNIT_TYPES.map((unit) => [unit, unit])}
      />
      <SelectField
        label={t('Order')}
        value={filters.order ?? 'desc'}
        onText={(text) => change({ order: text })}
        options={[
          ['desc', t('Newest first')],
          ['asc', t('Oldest first')],
        ]}
      />
      <TypedFilters
        key={[filters.model, filters.error_code, filters.ref, filters.session_id].join('\n')}
        filters={filters}
        onApply={change}
      />
      <div className="flex items-end">
        <Button onClick={clear}>{t('Clear')}</Button>
      </div>
    </FilterPanel>
  )
}
