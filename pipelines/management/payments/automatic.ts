/** Operations of saved cards and automatic top-ups. */
import { Failure } from '../../../schemas/failure.ts'
import {
  listCards,
  removeCard,
  saveCard,
  setAutomaticTopUp,
  showAutomaticTopUp,
} from '../../../schemas/management/payments/automatic.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { AutomaticTopUp, SavedMethod } from '../../../schemas/payments/payment.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import { setupPages } from '../../payments/pages.ts'
import { implementWith } from '../operation.ts'
import { toWholeList } from '../page.ts'
import { consoleBase, findOrCreateCustomer, openCards, type PaymentServices } from './cards.ts'
import { assertEnough } from './payments.ts'

const implement = implementWith<PaymentServices>()

const cardShape = toApiShape<SavedMethod>

const automaticShape = (accountId: string, settings: AutomaticTopUp | null) => ({
  account_id: accountId,
  enabled: settings?.isEnabled ?? false,
  threshold: settings && printCredits(settings.threshold),
  amount: settings && printCredits(settings.amount),
  monthly_maximum: settings && printCredits(settings.monthlyMaximum),
  failures: settings?.failures ?? 0,
  off_reason: settings?.offReason ?? null,
  waits_until: settings?.waitsUntil?.toISOString() ?? null,
  waits_for: settings?.waitsFor ?? null,
})

export const automaticOperations = [
  implement(listCards, async ({ database }, { account_id: accountId }) =>
    toWholeList((await database.payments.listMethods(accountId)).map(cardShape)),
  ),
  implement(saveCard, async (context, { account_id: accountId }, services) => {
    const { provider, rates } = await openCards(services)
    const customerId = await findOrCreateCustomer(context, provider, accountId)
    const pages = setupPages(consoleBase(context, services), accountId)
    return { url: await provider.openSetup(customerId, rates.currency, pages) }
  }),
  implement(removeCard, async ({ database, write }, { id, account_id: accountId }, services) => {
    const { provider } = await openCards(services)
    const card = (await database.payments.listMethods(accountId)).find((saved) => saved.id === id)
    const customerId = await database.payments.findCustomer(accountId)
    if (customerId === null || card === undefined)
      throw new Failure('not_found', `There is no card ${id} of ${accountId}.`)
    await provider.removeMethod(id)
    const removed = { ...card, about: 'method', event: 'removed', customerId } as const
    await write((writing) => writing.payments.takeNotice(removed))
    return { id, removed: true as const }
  }),
  implement(showAutomaticTopUp, async ({ database }, { account_id: accountId }) =>
    automaticShape(accountId, await database.payments.findAutomatic(accountId)),
  ),
  implement(setAutomaticTopUp, async ({ write }, input, services) => {
    const { account_id: accountId, enabled: isEnabled, threshold, amount } = input
    const monthlyMaximum = input.monthly_maximum
    assertEnough(amount, 'amount')
    if (threshold < 0n) throw new Failure('invalid_request', 'threshold: is never negative.')
    if (monthlyMaximum < amount)
      throw new Failure('invalid_request', 'monthly_maximum: is less than the amount of one top-up.')
    if (isEnabled) await openCards(services)
    const wanted = { accountId, isEnabled, threshold, amount, monthlyMaximum }
    return automaticShape(accountId, await write((writing) => writing.payments.setAutomatic(wanted)))
  }),
]
