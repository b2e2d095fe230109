/** Payments of an account, with their receipts. */
import { type AnswerOf, linkTo } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Badge, EmptyState } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, Money, Time } from '../../ui/text.tsx'
import { printMoney } from './top-up.tsx'

type Payment = AnswerOf<'listPayments'>['data'][number]

const TONES = {
  created: 'neutral',
  open: 'neutral',
  confirming: 'warn',
  paid: 'good',
  failed: 'bad',
  expired: 'neutral',
} as const

function stateName(state: Payment['state']): string {
  const names: Readonly<Record<Payment['state'], string>> = {
    created: t('Started'),
    open: t('Pending'),
    confirming: t('Needs your confirmation'),
    paid: t('Paid'),
    failed: t('Failed'),
    expired: t('Expired'),
  }
  return names[state]
}

export function Payments({ accountId }: { readonly accountId: string }) {
  const list = useList('listPayments', { account_id: accountId })
  const columns: Column<Payment>[] = [
    { name: t('Time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Payment'), cell: ({ id }) => <Id id={id} /> },
    {
      name: t('State'),
      cell: ({ state, url }) => (
        <span className="inline-flex items-center gap-2">
          <Badge tone={TONES[state]}>{stateName(state)}</Badge>
          {url !== null && (
            <a href={url} className="text-accent hover:underline">
              {state === 'confirming' ? t('Confirm') : t('Continue')}
            </a>
          )}
        </span>
      ),
    },
    { name: t('Credits'), isNumber: true, cell: ({ credits }) => <Money amount={credits} /> },
    { name: t('Price'), isNumber: true, cell: ({ amount, currency }) => printMoney(amount, currency) },
    {
      name: t('Receipts'),
      cell: ({ receipts }) => (
        <span className="inline-flex gap-3">
          {receipts.map(({ number, kind }) => (
            <a
              key={number}
              href={linkTo('downloadReceipt', { number })}
              download
              className="text-accent hover:underline"
            >
              {kind === 'receipt' ? t('Receipt {number}', { number }) : t('Credit note {number}', { number })}
            </a>
          ))}
        </span>
      ),
    },
  ]
  return (
    <ListPanel
      title={t('Payments')}
      caption={t('Payments')}
      list={list}
      columns={columns}
      keyOf={({ id }) => id}
      empty={<EmptyState title={t('Nothing was paid by card yet.')} />}
    />
  )
}
