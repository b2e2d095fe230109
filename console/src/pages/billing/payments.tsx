/** Payments of an account, with their receipts. */
import { CreditCard } from 'lucide-react'
import { type AnswerOf, linkTo } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { printMoney } from '../../format.ts'
import { t } from '../../i18n.ts'
import { StatusBadge, type Statuses } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Anchor, Id, Money, Time } from '../../ui/text.tsx'

type Payment = AnswerOf<'listPayments'>['data'][number]

export const describeStatuses = (): Statuses<Payment['state']> => ({
  created: ['neutral', t('Started')],
  open: ['neutral', t('Pending')],
  confirming: ['warn', t('Needs your confirmation')],
  paid: ['good', t('Paid')],
  failed: ['bad', t('Failed')],
  expired: ['neutral', t('Expired')],
})

export function Payments({ accountId }: { readonly accountId: string }) {
  const list = useList('listPayments', { account_id: accountId })
  const statuses = describeStatuses()
  const columns: Column<Payment>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Payment'), from: 'wide', cell: ({ id }) => <Id id={id} /> },
    {
      name: t('Status'),
      cell: ({ state, url }) => (
        <span className="inline-flex items-center gap-2">
          <StatusBadge statuses={statuses} status={state} />
          {url !== null && (
            <Anchor href={url}>{state === 'confirming' ? t('Confirm') : t('Continue')}</Anchor>
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
            <Anchor key={number} href={linkTo('openReceipt', { number })} target="_blank">
              {kind === 'receipt' ? t('Receipt {number}', { number }) : t('Credit note {number}', { number })}
            </Anchor>
          ))}
        </span>
      ),
    },
  ]
  return (
    <ListPanel
      title={t('Payments')}
      list={list}
      columns={columns}
      empty={{ title: t('There are no card payments yet.'), icon: CreditCard, docs: 'payments.md' }}
    />
  )
}
