/**
 * A customer tops up by card at the provider's page, waits until it is booked, and switches automatic top-ups on. An
 * operator who views an account does none of it.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { openShop } from '../end-to-end/payments/support.ts'
import { withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { mouse } from '../support/hands.ts'
import { AGENT, button, heading, link, newOrganization, row, signIn, withEachHand } from './support.ts'

t.test('top-up by card', async (t) => {
  // Without workers of tasks nobody compares payments with the provider: they stay pending until their webhook comes.
  const shop = await openShop(t, { TOLLGATE_ROLES: 'gateway,settler' })
  const { service, control } = shop
  await withEachHand(t, 'top-up', async (t, { hand, page, look }) => {
    const dora = await signIn(service, page, { name: 'Dora', credit: '600' })
    const { accountId } = dora
    const shopName = `Dora's shop ${hand.name}`
    await newOrganization(service, { name: shopName }, dora)
    await page.reload()
    await hand.press(link(page, 'Billing'))
    await heading(page, 'Billing').waitFor()
    await page.getByText('There are no card payments yet.').waitFor()
    const accounts = page.getByLabel('Account', { exact: true })
    const own = await accounts.inputValue()
    const amount = page.getByLabel('Credits to add')
    const usual = await amount.inputValue()
    await accounts.selectOption({ label: shopName })
    await page.waitForURL(/account=/)
    await hand.write(amount, '777')
    await accounts.selectOption(own)
    await until('the amount of the own account is shown', async () => (await amount.inputValue()) === usual)
    const credits = page.getByLabel('Credits', { exact: true })
    await hand.write(credits, '100')
    await hand.press(button(page, 'Go to payment'))
    await page
      .getByText(/^A top-up is at least 404\.4|^At least 404\.4 credits/)
      .first()
      .waitFor()
    t.equal(await credits.getAttribute('aria-invalid'), 'true', 'beside its field')
    await hand.write(credits, '1,000')
    t.equal(await credits.getAttribute('aria-invalid'), 'false', 'until the field changes')
    await page.getByText('1,000 credits for 10.00 USD. You pay on the next page.').waitFor()
    await hand.press(button(page, '500 for 5.00 USD'))
    await hand.press(page.getByLabel('Save the card for automatic top-ups'))

    await control('PUT', '/faults', { mode: 'hold' })
    await hand.press(button(page, 'Go to payment'))
    await page.getByRole('heading', { name: 'Pay $5.00' }).waitFor()
    await hand.write(page.getByLabel('Card number'), '4000 0000 0000 0002')
    await hand.press(button(page, 'Pay'))
    await page.getByRole('alert').filter({ hasText: 'declined' }).waitFor()
    t.equal((await service.database.accounts.show(accountId)).wallet.balance, 600n * ONE_CREDIT)
    await hand.write(page.getByLabel('Card number'), '4242 4242 4242 4242')
    await hand.press(button(page, 'Pay'))
    await page.getByText('Payment pending').waitFor()
    await row(page, '5.00 USD').getByText('Pending', { exact: true }).waitFor()

    await control('POST', '/release')
    await control('PUT', '/faults', {})
    await page.getByText('Payment booked').waitFor()
    await row(page, '5.00 USD').getByText('Paid', { exact: true }).waitFor()
    const ledger = page.getByRole('region', { name: 'Ledger' })
    await ledger.getByText('500.00', { exact: true }).waitFor()
    await ledger.getByText('1,100.00', { exact: true }).waitFor()
    const csv = page.waitForEvent('download')
    await hand.press(button(ledger, 'CSV'))
    const records = readFileSync(await (await csv).path(), 'utf8')
      .trim()
      .split('\r\n')
    t.equal(records[0], 'time,kind,amount_credits,call_or_task,note,balance_credits')
    t.match(records[1], /,topup,500,.*,1100$/)
    t.match(records[2], /,trial,600,.*,600$/)
    await hand.press(ledger.getByRole('button', { name: 'Top-up × 1' }))
    await row(ledger, 'Top-up').getByText('500.00').waitFor()
    t.equal(await row(ledger, 'Trial').count(), 0)
    await look('billing-ledger')
    await hand.press(button(ledger, 'Clear'))
    await hand.write(ledger.getByLabel('Search the ledger'), 'nothing like it')
    await hand.press(button(ledger, 'Search'))
    await ledger.getByText('No entries match.').waitFor()
    await hand.press(button(ledger, 'Clear'))
    await page.getByRole('listitem').filter({ hasText: '•••• 4242' }).waitFor()
    t.equal((await service.database.accounts.show(accountId)).wallet.balance, 1_100n * ONE_CREDIT)
    const opened = page.waitForEvent('popup')
    await hand.press(page.getByRole('link', { name: /^Receipt \d+$/ }))
    const receipt = await opened
    await receipt.getByRole('heading', { name: 'Receipt / 收据' }).waitFor()
    await receipt.getByText('5.00 USD').waitFor()
    await receipt.close()

    await hand.press(page.getByLabel('Charge the saved card when the balance is low'))
    await hand.write(page.getByLabel('When the balance is below'), '2,000')
    await page
      .getByText(
        'The balance is below 2,000 credits now: saving this charges 5.00 USD to Visa •••• 4242 at once.',
      )
      .waitFor()
    await look('billing-charges-now')
    await hand.write(page.getByLabel('When the balance is below'), '200')
    await page
      .getByText('When the balance falls below 200 credits, Visa •••• 4242 is charged 5.00 USD.')
      .waitFor()
    // The notice goes by itself: it is waited for from before it comes.
    const notice = page.getByText('Automatic top-up saved')
    await Promise.all([notice.waitFor(), hand.press(button(page, 'Save automatic top-up'))])
    await look('billing-cards')
    await page.reload()
    t.ok(await page.getByLabel('Charge the saved card when the balance is low').isChecked())

    await hand.press(button(page, 'Save a card'))
    await page.getByRole('heading', { name: 'Save a card' }).waitFor()
    await hand.press(button(page, 'Save the card'))
    const saved = page.getByRole('status').filter({ hasText: 'The card 4242 is saved.' })
    await saved.waitFor()
    await look('billing-saved-card')
    await hand.press(button(saved, 'Close'))
    await saved.waitFor({ state: 'detached' })
  })

  await t.test('an operator who views an account is offered nothing that changes it', (t) =>
    withPage(t, 'viewed billing', async (page) => {
      const { database, baseUrl } = service
      const { account } = await database.accounts.create({ name: 'Viewed', kind: 'organization', credit: 0n })
      const agent = await database.agents.create(account.id, AGENT)
      const olga = await signIn(service, page, { name: 'Olga', role: 'operator' })
      await page.goto(`${baseUrl}/console/accounts?open=${account.id}`)
      await mouse.press(button(page, 'View as its owner'))
      await page.getByText('You see Viewed').waitFor()
      await mouse.press(link(page, 'Billing'))
      await page.getByLabel('Monthly maximum').waitFor()
      for (const act of ['Go to payment', 'Save a card', 'Save automatic top-up', 'Set a budget'])
        t.equal(await button(page, act).count(), 0, act)

      await page.goto(`${baseUrl}/console/agents?account=${account.id}&agent=${agent.id}`)
      const drawer = page.getByRole('dialog', { name: AGENT.name })
      t.ok(await drawer.getByLabel('Persona').isDisabled())
      t.equal(await button(drawer, 'Save as a draft').count(), 0)

      await page.goto(`${baseUrl}/console/playground?account=${account.id}`)
      await page.getByText('Your role in this account does not include this page.').waitFor()
      await mouse.press(button(page, 'Create an organization'))
      const creating = page.getByRole('dialog', { name: 'Create an organization' })
      await mouse.write(creating.getByLabel('Name'), 'Never')
      await mouse.press(button(creating, 'Create'))
      await creating
        .getByRole('alert')
        .filter({ hasText: 'You cannot change anything while you view an account.' })
        .waitFor()
      t.same(await database.keys.list(account.id), [])

      await page.goto(`${baseUrl}/console/keys?account=${olga.accountId}`)
      await heading(page, 'Keys').waitFor()
      t.equal(await button(page, 'Create a key').count(), 0, "also in an account of one's own")
    }),
  )
})
