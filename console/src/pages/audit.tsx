/** The audit record: of an account, or of the whole installation for operators. */

import { getRouteApi } from '@tanstack/react-router'
import { type CsvValue, printCsvRecord } from '../../../src/core/call-log/csv-records.ts'
import type { AnswerOf } from '../api/client.ts'
import { useList } from '../api/read.ts'
import { useAccount } from '../api/session.ts'
import { toZoneRange } from '../format.ts'
import { t } from '../i18n.ts'
import { PageHeader } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Code, Id, Time } from '../ui/text.tsx'
import { CsvExport } from './csv-export.tsx'
import { Filter, PeriodFilter, ScopeFilter, useIsWhole } from './filters.tsx'

type Entry = AnswerOf<'listAudit'>['data'][number]

const KINDS = ['key.', 'key_request.', 'member.', 'account.', 'wallet.', 'agent.', 'user.', 'token.'] as const

const route = getRouteApi('/signed-in/audit')

const CSV_COLUMNS = [
  'id',
  'created_at',
  'actor',
  'actor_name',
  'action',
  'account_id',
  'subject_id',
  'before',
  'after',
] as const

const toCsvRecord = (entry: Entry): string =>
  printCsvRecord(
    CSV_COLUMNS.map((column) => {
      const value = entry[column]
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as CsvValue)
    }),
  )

const print = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function Changes({ before, after }: Pick<Entry, 'before' | 'after'>) {
  const [old, now] = [before, after].map((side) => (side ?? {}) as Record<string, unknown>)
  const fields = [...new Set([...Object.keys(old!), ...Object.keys(now!)])]
  if (fields.length === 0) return '–'
  return (
    <details>
      <summary className="max-w-xs truncate text-quiet">{fields.join(', ')}</summary>
      <dl className="mt-1 grid max-w-lg grid-cols-[auto_1fr] gap-x-3 whitespace-normal break-all font-mono text-xs">
        {fields.map((field) => (
          <div key={field} className="contents">
            <dt className="text-quiet">{field}</dt>
            <dd>
              {field in old! && field in now! ? `${print(old![field])} → ` : ''}
              {field in now! ? print(now![field]) : `${print(old![field])} →`}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  )
}

export function Audit() {
  const { account_id: accountId } = useAccount()
  const { action, scope, account: _, ...period } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const operation = isWhole ? 'listInstallationAudit' : 'listAudit'
  const input = { action, account_id: isWhole ? undefined : accountId, ...toZoneRange(period) }
  const list = useList(operation, input as never)
  const columns: Column<Entry>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Actor'), cell: ({ actor, actor_name }) => <span title={actor}>{actor_name ?? actor}</span> },
    { name: t('Operation'), cell: ({ action: name }) => <Code>{name}</Code> },
    { name: t('Subject'), from: 'wide', cell: ({ subject_id }) => <Id id={subject_id} /> },
    { name: t('Changes'), cell: (entry) => <Changes {...entry} /> },
  ]
  return (
    <>
      <PageHeader
        title={t('Audit')}
        description={t('Every administrative operation, who did it, and what it changed.')}
        actions={
          <CsvExport<Entry>
            name="audit"
            operation={operation}
            input={input}
            loadFormat={async () => ({ header: printCsvRecord(CSV_COLUMNS), toRecord: toCsvRecord })}
          />
        }
      />
      <div className="mb-4 grid max-w-3xl gap-3 sm:grid-cols-3">
        <PeriodFilter value={period} hasAll usual="all" />
        <Filter
          name="action"
          label={t('Operation')}
          value={action}
          options={KINDS.map((kind) => [kind, `${kind}*`])}
        />
        <ScopeFilter value={scope} />
      </div>
      <ListPanel caption={t('Audit')} list={list} columns={columns} empty={t('No operations match.')} />
    </>
  )
}
