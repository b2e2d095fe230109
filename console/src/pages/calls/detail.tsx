/** One call in full: its charge line by line, where its time went, its attempts, and everything as JSON. */

import { Link } from '@tanstack/react-router'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import type { DetailItem } from '../../../../schemas/call-log/detail.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { readViewedAccount } from '../../api/viewing.ts'
import { t } from '../../i18n.ts'
import { Fact, FactPanel, Panel, QueryState, StatusBadge } from '../../ui/states.tsx'
import { Code, CodeBlock, CopyButton, Id, Money, TextLink, Time } from '../../ui/text.tsx'
import { RefundButton, RefundFact } from '../refund.tsx'
import { describeStatuses } from './query.ts'

type Call = AnswerOf<'showCall'>

const Items = ({ title, items }: { title: string; items: readonly DetailItem[] }) =>
  items.length > 0 && (
    <FactPanel title={title}>
      {items.map(({ k, v }) => (
        <Fact key={k} name={k.replaceAll('_', ' ')} value={v} />
      ))}
    </FactPanel>
  )

/** Bars on one scale: an offset and a length, in milliseconds. */
function Bars({
  bars,
}: {
  bars: readonly { name: string; from: number; ms: number; tone: string; note?: string | null }[]
}) {
  const end = Math.max(1, ...bars.map(({ from, ms }) => from + ms))
  return (
    <ul className="flex flex-col gap-2 p-4">
      {bars.map(({ name, from, ms, tone, note }) => (
        <li key={name}>
          <div className="flex justify-between gap-3 text-sm">
            <span>{name}</span>
            <span className="tabular">{ms.toLocaleString('en', { maximumFractionDigits: 1 })} ms</span>
          </div>
          <div className="mt-1 h-2 rounded-full bg-raised">
            <div
              className={`h-2 min-w-0.5 rounded-full ${tone}`}
              style={{ marginLeft: `${(from / end) * 100}%`, width: `${(ms / end) * 100}%` }}
            />
          </div>
          {note && <p className="mt-0.5 text-bad text-xs">{note}</p>}
        </li>
      ))}
    </ul>
  )
}

function Timing({ gateway }: { gateway: readonly DetailItem[] }) {
  const ms = (name: string) => Number(gateway.find(({ k }) => k === name)?.v ?? 0)
  const before = ms('time_before_upstream_ms')
  const waiting = ms('time_waiting_for_upstream_ms')
  const answering = ms('time_answering_ms')
  if (before + waiting + answering === 0) return null
  return (
    <Panel title={t('Where the time went')}>
      <Bars
        bars={[
          { name: t('In the gateway, before the provider'), from: 0, ms: before, tone: 'bg-accent' },
          { name: t('Waiting for the provider'), from: before, ms: waiting, tone: 'bg-warn' },
          { name: t('Answering'), from: before + waiting, ms: answering, tone: 'bg-good' },
        ].filter(({ ms }) => ms > 0)}
      />
    </Panel>
  )
}

function Attempts({ attempts = [] }: { attempts: LogRow['attempts'] }) {
  const first = attempts[0]
  if (first === undefined) return null
  const begin = Date.parse(first.created_at)
  return (
    <Panel title={t('Attempts')}>
      <Bars
        bars={attempts.map(({ seq, created_at, latency_ms, error_code, error_message }) => ({
          name: t('Attempt {seq}', { seq }),
          from: Date.parse(created_at) - begin,
          ms: latency_ms,
          tone: error_code === null ? 'bg-good' : 'bg-bad',
          note: error_code && `${error_code}: ${error_message ?? ''}`,
        }))}
      />
    </Panel>
  )
}

function Charge({ call, detail, refund }: Call) {
  const lines = detail.gateway.filter(({ k }) => k.startsWith('charge'))
  return (
    <FactPanel title={t('Charge')}>
      {lines.map(({ k, v }) => (
        <Fact key={k} name={k.replace(/^charge_?/, '').replaceAll('_', ' ') || t('Charge')} value={v} />
      ))}
      <Fact
        name={t('Total')}
        value={
          <strong>
            <Money amount={call.cost} /> {t('credits')}
          </strong>
        }
      />
      <RefundFact refund={refund} />
    </FactPanel>
  )
}

/** Shown to operators and auditors, except while they view the account as its owner. */
function Margin({ operator }: Call) {
  if (operator === undefined || readViewedAccount() !== null) return null
  const { channel_id, upstream_cost, margin, usage_reported } = operator
  return (
    <FactPanel title={t('Margin')}>
      <Fact name={t('Channel')} value={channel_id ?? '–'} />
      <Fact
        name={t('Provider cost')}
        value={upstream_cost === null ? t('Not known') : <Money amount={upstream_cost} />}
      />
      {margin !== null && <Fact name={t('Margin')} value={<Money amount={margin} />} />}
      {usage_reported !== null && (
        <Fact
          name={t('Usage as reported')}
          value={<code className="break-all font-mono text-xs">{usage_reported}</code>}
        />
      )}
    </FactPanel>
  )
}

interface CallInFullProps extends Call {
  readonly account: CallDetailProps['account']
}

function CallInFull({ call, detail, refund, operator, account }: CallInFullProps) {
  const isRest = ({ k }: DetailItem) => !/^(charge|time_|cost$|request_id$|status$)/.test(k)
  return (
    <>
      <FactPanel>
        <Fact name={t('Status')} value={<StatusBadge statuses={describeStatuses()} status={call.status} />} />
        {account !== undefined && (
          <Fact
            name={t('Account')}
            value={
              <TextLink to="/accounts" search={{ open: account.id }}>
                {account.name}
              </TextLink>
            }
          />
        )}
        {call.error_code && (
          <Fact
            name={t('Error')}
            value={
              <span className="text-bad">
                <Code>{call.error_code}</Code> {call.error_message}
              </span>
            }
          />
        )}
        <Fact name={t('Request')} value={<Id id={call.request_id} />} />
        {call.task_id && <Fact name={t('Task')} value={<Id id={call.task_id} />} />}
        {call.session_id && (
          <Fact
            name={t('Session')}
            value={
              <Link
                to="."
                search={({ account: viewed }) =>
                  ({
                    account: viewed,
                    period: 'all',
                    session_id: call.session_id ?? undefined,
                    ...(account !== undefined && { account_id: account.id }),
                  }) as { account?: string }
                }
                className="text-accent underline"
              >
                {call.session_id}
              </Link>
            }
          />
        )}
        <Fact
          name={t('Key')}
          value={
            <>
              {call.key_name} <code className="font-mono text-quiet text-xs">{call.key_prefix}…</code>
            </>
          }
        />
        <Fact name={t('Sent')} value={<Time at={call.submitted_at} />} />
        <Fact name={t('Ended')} value={<Time at={call.created_at} />} />
      </FactPanel>
      {detail.request_note && <p className="rounded-md bg-accent-wash p-3">{detail.request_note}</p>}
      <Charge call={call} detail={detail} refund={refund} />
      <Margin call={call} detail={detail} refund={refund} operator={operator} />
      <Timing gateway={detail.gateway} />
      <Attempts attempts={call.attempts} />
      {call.result_urls.length > 0 && (
        <Panel title={t('Results')}>
          <ul className="p-4">
            {call.result_urls.map((url, index) => (
              <li key={url}>
                <a className="text-accent underline" href={url} target="_blank" rel="noreferrer">
                  {t('Result {number}', { number: index + 1 })}
                </a>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Items title={t('Request')} items={detail.request} />
      <Items title={t('Provider')} items={detail.upstream} />
      <Items title={t('Gateway')} items={detail.gateway.filter(isRest)} />
      <CodeBlock label="JSON" code={JSON.stringify({ call, detail, refund }, null, 2)} />
    </>
  )
}

interface CallDetailProps {
  readonly accountId: string
  /** Given if the page has the calls of all accounts. */
  readonly account: { readonly id: string; readonly name: string } | undefined
  readonly id: string
}

export function CallDetail({ accountId, account, id }: CallDetailProps) {
  const call = useGet('showCall', { id: Number(id), account_id: accountId })
  if (!call.isSuccess) return <QueryState query={call} rows={10} />
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <CopyButton text={location.href} label={t('Copy a link to this call')} />
        <RefundButton
          accountId={accountId}
          refId={call.data.call.task_id ?? call.data.call.request_id}
          cost={call.data.call.cost}
          refund={call.data.refund}
          onDone={() => void call.refetch()}
        />
      </div>
      <CallInFull {...call.data} account={account} />
    </>
  )
}
