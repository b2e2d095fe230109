/** The card payments of all accounts, for operators: find one, and refund it to its card. */
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import {
  computeReversal,
  countDecimals,
  countRefundable,
  parsePrice,
  printPrice,
  readShownPayment,
} from '../../../src/core/payments/price.ts'
import { type AnswerOf, linkTo, request } from '../api/client.ts'
import { useList } from '../api/read.ts'
import { useSession } from '../api/session.ts'
import { printExact, printMoney, toZoneRange } from '../format.ts'
import { t } from '../i18n.ts'
import { Dialog, DialogButton } from '../ui/dialog.tsx'
import { useFields } from '../ui/fields.ts'
import { DialogForm, NumberField } from '../ui/form.tsx'
import { listNames, PageHeader, StatusBadge } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Anchor, Id, Money, NONE, TextLink, Time } from '../ui/text.tsx'
import { useBalanceChange } from './balance-change.tsx'
import { describeStatuses } from './billing/payments.tsx'
import { Filter, FilterPanel, PeriodFilter, SearchForm } from './filters.tsx'
import { ReasonField } from './reason-field.tsx'

const route = getRouteApi('/signed-in/payments')

type Payment = AnswerOf<'listAllPayments'>['data'][number]

function RefundDialog({ payment, onClose }: { readonly payment: Payment; onClose(): void }) {
  const { id, account_id: accountId, currency, credits, account_name: account } = payment
  const reversible = readShownPayment(payment)
  const left = printPrice({ amount: countRefundable(reversible), currency })
  const form = useFields(`refund ${id}`, { amount: left, reason: '' })
  const { amount, reason } = form.values
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const refund = useMutation({
    meta: { done: t('Payment refunded'), changes: ['/installation/payments', '/accounts'] },
    mutationFn: () =>
      request('refundPayment', { id, reason, amount: amount === left ? null : amount }, { idempotencyKey }),
    onSuccess: onClose,
  })
  const part = parsePrice(amount, currency)
  const { sends, note, question } = useBalanceChange({
    accountId,
    change: part === null ? null : -computeReversal(reversible, part),
    operation: 'refundPayment',
    amount,
    isFinal: true,
    title: t('Refund {amount} to the card of {account}', { amount: printMoney(amount, currency), account }),
    submit: t('Refund to the card'),
    book: refund,
  })
  return (
    <Dialog
      title={t('Refund the payment of {account}', { account })}
      description={t(
        'The money goes back to the card, and its credits are taken from the balance. The payment added {credits} credits.',
        { credits: printExact(credits) },
      )}
      onClose={onClose}
    >
      <DialogForm sends={sends} fields={form} submit={t('Refund to the card')} kind="danger">
        <NumberField
          label={t('Amount in {currency}', { currency: currency.toUpperCase() })}
          hint={t('At most {left}.', { left: printMoney(left, currency) })}
          required
          min={0}
          max={Number(left)}
          decimals={countDecimals(currency)}
          {...form.field('amount')}
        />
        <ReasonField {...form.field('reason')} />
        {note}
      </DialogForm>
      {question}
    </Dialog>
  )
}

export function AllPayments() {
  const { search, state, account: _, ...period } = route.useSearch()
  const mayRefund = useSession().user.installation_role === 'operator'
  const list = useList('listAllPayments', {
    search,
    ...(state && { state }),
    ...toZoneRange(period),
  } as never)
  const statuses = describeStatuses()
  const columns: Column<Payment>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Payment'), from: 'wide', cell: ({ id }) => <Id id={id} /> },
    {
      name: t('Account'),
      cell: ({ account_id: id, account_name }) => (
        <span className="flex flex-wrap gap-x-3">
          <TextLink to="/accounts" search={{ open: id }}>
            {account_name}
          </TextLink>
          <TextLink to="/all-calls" search={{ account_id: id, period: '30d' }}>
            {t('Calls')}
          </TextLink>
          <TextLink to="/billing" search={{ account: id }}>
            {t('Ledger')}
          </TextLink>
        </span>
      ),
    },
    { name: t('Status'), cell: ({ state }) => <StatusBadge statuses={statuses} status={state} /> },
    { name: t('Credits'), isNumber: true, cell: ({ credits }) => <Money amount={credits} /> },
    { name: t('Price'), isNumber: true, cell: ({ amount, currency }) => printMoney(amount, currency) },
    {
      name: t('Refunded'),
      from: 'wide',
      isNumber: true,
      cell: ({ refunded, currency }) => (Number(refunded) === 0 ? NONE : printMoney(refunded, currency)),
    },
    {
      name: t('Receipts'),
      from: 'wide',
      cell: ({ receipts }) =>
        receipts.map(({ number, kind }) => (
          <Anchor key={number} href={linkTo('openReceipt', { number })} target="_blank" className="mr-2">
            {kind === 'receipt' ? t('Receipt {number}', { number }) : t('Credit note {number}', { number })}
          </Anchor>
        )),
    },
    {
      name: t('Actions'),
      cell: (payment) =>
        mayRefund &&
        payment.state === 'paid' &&
        countRefundable(readShownPayment(payment)) > 0n && (
          <DialogButton
            kind="quiet"
            dialog={(onClose) => <RefundDialog payment={payment} onClose={onClose} />}
          >
            {t('Refund')}
          </DialogButton>
        ),
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Payments')}
        description={t('The card payments of every account, newest first.')}
      />
      <SearchForm label={t('Payment, account or provider id')} value={search} />
      <FilterPanel>
        <PeriodFilter value={period} hasAll usual="all" />
        <Filter name="state" label={t('Status')} value={state} options={listNames(statuses)} />
      </FilterPanel>
      <ListPanel caption={t('Payments')} list={list} columns={columns} empty={t('No payments match.')} />
    </>
  )
}
