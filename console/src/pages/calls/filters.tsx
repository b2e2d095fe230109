/** The filters of the call log. All of them are in the URL. */

import { type RegisteredRouter, type RouteById, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form, SelectField } from '../../ui/form.tsx'
import { KeyField } from '../key-field.tsx'
import { PeriodFields } from '../period.tsx'

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

/** Returns the names of the states, in the language of the page. */
export const statusNames = (): Readonly<Record<LogRow['status'], string>> => ({
  success: t('Success'),
  error: t('Error'),
  interrupted: t('Interrupted'),
  rejected: t('Rejected'),
})

/** The filters that are typed are applied together: each of them is a query. */
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
    <section
      aria-label={t('Filters')}
      className="mb-4 grid grid-cols-2 gap-3 rounded-lg border border-line bg-surface p-3 md:grid-cols-4 xl:grid-cols-6"
    >
      <PeriodFields value={filters} hasAll onChange={change} />
      <SelectField
        label={t('State')}
        value={filters.status ?? ''}
        onText={(text) => change({ status: text })}
        options={[
          ['', t('All')],
          ['error,interrupted,rejected', t('All but success')],
          ...Object.entries(statusNames()),
        ]}
      />
      {role !== 'billing' && (
        <KeyField
          names={keys.data}
          value={filters.key_id}
          hasAll
          onChange={(text) => change({ key_id: text })}
        />
      )}
      <SelectField
        label={t('Kind')}
        value={filters.unit_type ?? ''}
        onText={(text) => change({ unit_type: text })}
        options={[['', t('All')], ...UNIT_TYPES.map((unit) => [unit, unit] as const)]}
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
    </section>
  )
}
