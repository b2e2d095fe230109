/** Whether the books agree: the last verification and its differences, journals that are not drained, and jobs. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { printNumber, printTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { JobProgress } from '../../ui/job-progress.tsx'
import { Badge, EmptyState, ErrorState, PageHeader, Panel, QueryState, Stat } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Code, Time } from '../../ui/text.tsx'
import { Journals } from './journals.tsx'
import { Partitions } from './partitions.tsx'
import { RefusedEvents } from './refused-events.tsx'

type Job = AnswerOf<'listJobs'>['data'][number]
type Difference = NonNullable<Job['verified']>['differences'][number]

const PATH: OperationPath = '/jobs'

const isOpen = ({ ended_at }: Job): boolean => ended_at === null

const kindNames = (): Readonly<Record<Job['kind'], string>> => ({
  verify: t('Verify'),
  rebuild: t('Rebuild of the call log'),
})

function StateBadge({ job: { state, verified } }: { readonly job: Job }) {
  const names: Readonly<Record<Job['state'], string>> = {
    queued: t('Waiting'),
    running: t('Running'),
    done: verified === null ? t('Done') : verified.ok ? t('No difference') : t('Differences'),
    failed: t('Failed'),
    cancelled: t('Cancelled'),
  }
  const isBad = state === 'failed' || verified?.ok === false
  return <Badge tone={isBad ? 'bad' : state === 'done' ? 'good' : 'neutral'}>{names[state]}</Badge>
}

function Progress({ job }: { readonly job: Job }) {
  const queries = useQueryClient()
  const cancel = useMutation({
    mutationFn: () => request('cancelJob', { id: job.id }),
    onSettled: () => queries.invalidateQueries({ queryKey: [PATH] }),
  })
  return (
    <section className="flex flex-wrap items-center gap-4 rounded-lg border border-line bg-surface p-4">
      <span className="font-medium">{kindNames()[job.kind]}</span>
      <JobProgress done={job.done} total={job.total} />
      <Button isBusy={cancel.isPending} onClick={() => cancel.mutate()}>
        {t('Cancel')}
      </Button>
      <ErrorState error={cancel.error} />
    </section>
  )
}

function LastVerify({ job }: { readonly job: Job }) {
  const { verified } = job
  if (verified === null) return null
  const columns: Column<Difference>[] = [
    { name: t('Account'), cell: ({ account_id }) => account_id || '–' },
    { name: t('Kind'), cell: ({ kind }) => <Code>{kind}</Code> },
    { name: t('Subject'), cell: ({ ref }) => ref ?? '–' },
    { name: t('Expected'), isNumber: true, cell: ({ expected }) => expected },
    { name: t('Found'), isNumber: true, cell: ({ found }) => found },
  ]
  const { differences } = verified
  const unbooked = differences.filter(({ kind }) => kind === 'settlement_unbooked').length
  return (
    <>
      <dl className="grid gap-4 sm:grid-cols-2 xl:grid-cols-4">
        <Stat
          name={t('Last verification')}
          value={<StateBadge job={job} />}
          {...(job.ended_at && {
            note: verified.since
              ? t('{at}, entries written since {since}', {
                  at: printTime(job.ended_at),
                  since: printTime(verified.since),
                })
              : printTime(job.ended_at),
          })}
        />
        <Stat name={t('Wallets')} value={printNumber(verified.accounts)} />
        <Stat name={t('Ledger entries')} value={printNumber(verified.entries)} />
        <Stat name={t('Unbooked settlements')} value={printNumber(unbooked)} />
      </dl>
      {verified.call_log_not_compared && (
        <p className="text-warn">
          {t('The call log was not compared: {reason}', { reason: verified.call_log_not_compared })}
        </p>
      )}
      {verified.payments_not_compared && (
        <p className="text-warn">
          {t('The payments were not compared: {reason}', { reason: verified.payments_not_compared })}
        </p>
      )}
      {differences.length > 0 && (
        <Panel title={t('Differences')}>
          <Table
            caption={t('Differences')}
            columns={columns}
            rows={differences}
            toKey={(row) => `${row.kind} ${row.account_id} ${row.ref}`}
          />
        </Panel>
      )}
    </>
  )
}

export function Integrity() {
  const { user } = useSession()
  const queries = useQueryClient()
  const jobs = useGet('listJobs', {})
  const start = useMutation({
    mutationFn: (job: { kind: Job['kind']; full?: boolean }) => request('startJob', job),
    onSettled: () => queries.invalidateQueries({ queryKey: [PATH] }),
  })
  const rows = jobs.data?.data ?? []
  const last = rows.find(({ verified }) => verified !== null)
  const mayStart = (kind: Job['kind']) => !rows.some((job) => job.kind === kind && isOpen(job))
  const columns: Column<Job>[] = [
    { name: t('Job'), cell: ({ kind }) => kindNames()[kind] },
    { name: t('Status'), cell: (job) => <StateBadge job={job} /> },
    { name: t('Started'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Ended'),
      isTime: true,
      cell: ({ ended_at }) => (ended_at === null ? '–' : <Time at={ended_at} />),
    },
    {
      name: t('Result'),
      cell: ({ error, rebuilt, verified }) =>
        error ??
        (rebuilt && t('{count} rows', { count: printNumber(rebuilt.rows) })) ??
        (verified && t('{count} differences', { count: verified.differences.length })) ??
        '–',
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Integrity')}
        description={t('Compares all wallets with the ledger, and the ledger with the call log.')}
        actions={
          user.installation_role === 'operator' && (
            <>
              <Button
                kind="primary"
                disabled={!mayStart('verify')}
                isBusy={start.isPending}
                onClick={() => start.mutate({ kind: 'verify' })}
              >
                {t('Verify now')}
              </Button>
              <Button
                disabled={!mayStart('verify')}
                isBusy={start.isPending}
                onClick={() => start.mutate({ kind: 'verify', full: true })}
              >
                {t('Verify everything')}
              </Button>
              <Button
                disabled={!mayStart('rebuild')}
                isBusy={start.isPending}
                onClick={() => start.mutate({ kind: 'rebuild' })}
              >
                {t('Rebuild the call log')}
              </Button>
            </>
          )
        }
      />
      <div className="flex flex-col gap-4">
        <ErrorState error={start.error} />
        <QueryState query={jobs} rows={6} />
        {rows.filter(isOpen).map((job) => (
          <Progress key={job.id} job={job} />
        ))}
        {last && <LastVerify job={last} />}
        <RefusedEvents mayChange={user.installation_role === 'operator'} />
        <Journals mayChange={user.installation_role === 'operator'} />
        {jobs.isSuccess && (
          <Panel title={t('Jobs')}>
            {rows.length === 0 ? (
              <EmptyState title={t('No verification has been run yet.')} />
            ) : (
              <Table caption={t('Jobs')} columns={columns} rows={rows} />
            )}
          </Panel>
        )}
        <Partitions />
      </div>
    </>
  )
}
