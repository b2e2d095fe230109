/** An operator finds a payment among those of all accounts and refunds it to its card. */
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { openShop } from '../end-to-end/payments/support.ts'
import { withPage } from '../support/browser.ts'
import { mouse } from '../support/hands.ts'
import { button, heading, link, row, signIn, withEachHand } from './support.ts'

t.test('refund of a payment', async (t) => {
  const { service } = await openShop(t, { TOLLGATE_ROLES: 'gateway,settler' })
  await withEachHand(t, 'payments', async (t, { hand, page, look }) => {
    const { accountId } = await withPage(t, `payer ${hand.name}`, async (payer) => {
      const user = await signIn(service, payer, {
        name: `Dora ${hand === mouse ? 'one' : 'two'}`,
        credit: '0',
      })
      await mouse.press(link(payer, 'Billing'))
      await mouse.press(button(payer, '500 for 5.00 USD'))
      await mouse.press(button(payer, 'Go to payment'))
      await mouse.write(payer.getByLabel('Card number'), '4242 4242 4242 4242')
      await mouse.press(button(payer, 'Pay'))
      await payer.getByText('Payment booked').waitFor()
      return user
    })
    const { account } = await service.database.accounts.show(accountId)
    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Payments'))
    await heading(page, 'Payments').waitFor()
    await hand.write(page.getByLabel('Payment, account or provider id'), account.name)
    await hand.press(button(page, 'Search'))
    const payment = row(page, account.name)
    await payment.getByText('Paid', { exact: true }).waitFor()
    await look('all-payments')
    await hand.press(button(payment, 'Refund'))
    const dialog = page.getByRole('dialog', { name: `Refund the payment of ${account.name}` })
    await hand.write(dialog.getByLabel('Reason'), 'bought by mistake')
    await dialog.getByText('The balance goes from 500 to 0 credits.').waitFor()
    await hand.write(dialog.getByLabel('Amount in USD'), '2.5')
    await dialog.getByText('The balance goes from 500 to 250 credits.').waitFor()
    await hand.write(dialog.getByLabel('Amount in USD'), '5.00')
    await look('payment-refund')
    await hand.press(button(dialog, 'Refund to the card'))
    const question = page.getByRole('dialog', { name: `Refund 5.00 USD to the card of ${account.name}` })
    await question.getByText('This cannot be undone, so type the amount.').waitFor()
    t.ok(await button(question, 'Refund to the card').isDisabled(), 'the amount is typed first')
    await look('payment-refund-question')
    await hand.write(question.getByLabel('Type 5.00 to confirm'), '5.00')
    await hand.press(button(question, 'Refund to the card'))
    await dialog.waitFor({ state: 'detached' })
    await payment.getByText('Credit note').waitFor()
    t.equal((await service.database.accounts.show(accountId)).wallet.balance, 0n * ONE_CREDIT)
    await hand.press(payment.getByRole('link', { name: account.name }))
    await page.getByRole('dialog', { name: 'Account' }).getByText('Card payment reversed').waitFor()
  })
})
