/** An owner sets up an endpoint and a threshold, and is alerted by email and by webhook. */
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { startReceiver } from '../pipelines/notifications/support.ts'
import { eventually, until } from '../support/eventually.ts'
import { startMailServer } from '../support/mail-server.ts'
import { startService, testConfig } from '../support/service.ts'
import { button, heading, link, row, signIn, withEachHand } from './support.ts'

t.test('alerts', async (t) => {
  const mails = await startMailServer(t)
  const service = await startService(t, {
    config: testConfig({ fast: {} }, 'webhooks: { private_addresses: true }'),
    env: {
      TOLLGATE_ROLES: 'gateway,settler,tasks',
      SMTP_URL: mails.url,
      SMTP_FROM: 'Tollgate <noreply@example.com>',
    },
  })
  const mailTo = (address: string, count: number) =>
    eventually(`mail ${count} to ${address}`, () => mails.to(address)[count - 1])
  await withEachHand(t, 'webhooks', async (t, { hand, page, look }) => {
    const receiver = await startReceiver(t)
    const user = await signIn(service, page, { name: 'Alma', credit: '100' })
    await hand.press(link(page, 'Webhooks'))
    await heading(page, 'Webhooks').waitFor()
    await hand.press(button(page, 'Add an endpoint'))
    const form = page.getByRole('dialog', { name: 'Add an endpoint' })
    await hand.write(form.getByLabel('Address'), receiver.url)
    await hand.press(form.getByLabel('All events'))
    await hand.press(form.getByLabel('balance.low'))
    await look('webhook-form')
    await hand.press(button(form, 'Add'))
    const shown = page.getByRole('dialog', { name: 'Secret of the endpoint' })
    const secret = (await shown.locator('pre').first().textContent())!.trim()
    await hand.press(button(shown, 'Done'))
    await row(page, receiver.url).getByText('Active', { exact: true }).waitFor()

    await hand.press(link(page, 'Billing'))
    await hand.write(page.getByLabel('Below'), '60')
    await hand.press(button(page, 'Save'))
    await until(
      'the threshold is set',
      async () => (await service.database.alerts.readLowBalance(user.accountId)) === 60n * ONE_CREDIT,
    )
    await look('billing-alerts')
    await service.database.wallets.adjust(user.accountId, -50n * ONE_CREDIT, { reason: 'test' })
    const hook = await eventually('the webhook', () => receiver.received[0])
    t.match(new Webhook(secret).verify(hook.body, hook.headers), {
      type: 'balance.low',
      data: { balance: '50', threshold: '60' },
    })
    t.match((await mailTo(user.email, 1)).headers, /^Subject: The balance of Alma is low$/m)

    await hand.press(link(page, 'Home'))
    const alert = page.getByRole('alert').filter({ hasText: 'The balance is below 60 credits.' })
    await alert.waitFor()
    await look('home-alert')
    await hand.press(alert.getByRole('link', { name: 'Billing' }))
    await heading(page, 'Billing').waitFor()

    await hand.press(link(page, 'Webhooks'))
    await hand.press(page.getByRole('link', { name: 'balance.low', exact: true }))
    const delivery = page.getByRole('dialog', { name: 'Delivery' })
    await delivery.getByText('webhook-signature').waitFor()
    await delivery.getByText('"threshold": "60"').waitFor()
    await look('webhook-delivery')
    await hand.press(button(delivery, 'Resend'))
    const again = await eventually('it is sent again', () => receiver.received[1])
    t.equal(again.headers['webhook-id'], hook.headers['webhook-id'], 'the event is the same one')
    await page.keyboard.press('Escape')
    await hand.press(page.getByRole('checkbox', { name: /^Select balance\.low, / }))
    const selected = page.getByRole('region', { name: 'Selected rows' })
    await selected.getByText('1 selected').waitFor()
    await hand.press(button(selected, 'Resend'))
    const third = await eventually('the selected one is sent again', () => receiver.received[2])
    t.equal(third.headers['webhook-id'], hook.headers['webhook-id'])

    await button(row(page, receiver.url), 'Rotate secret').dblclick()
    await shown.waitFor()
    // Where the second click of a slow double click lands.
    await page.mouse.click(1, 1)
    const next = (await shown.locator('pre').first().textContent())!.trim()
    t.not(next, secret)
    await hand.press(button(shown, 'Done'))
    await hand.press(button(row(page, receiver.url), 'Test'))
    const test = await eventually('the test event', () => receiver.received[3])
    for (const one of [secret, next])
      t.match(new Webhook(one).verify(test.body, test.headers), { type: 'webhook.test' }, 'both sign')

    await hand.press(button(page, 'Show the secret'))
    const callbacks = page.getByRole('dialog', { name: 'Secret for callbacks' })
    const shownSecret = (await callbacks.locator('pre').first().textContent())!.trim()
    t.match(shownSecret, /^whsec_/)
    t.not(shownSecret, secret)
    await look('callback-secret')
    await hand.press(button(callbacks, 'Done'))
    await hand.press(
      button(page.locator('section').filter({ hasText: 'Callbacks of tasks' }), 'Rotate secret'),
    )
    await callbacks.waitFor()
    t.not((await callbacks.locator('pre').first().textContent())!.trim(), shownSecret)
    await hand.press(button(callbacks, 'Done'))

    await page.goto(`${service.baseUrl}/console/profile`)
    const low = page.getByLabel('The balance is low')
    await low.waitFor()
    t.ok(await low.isChecked(), 'owners get it unless they choose otherwise')
    await hand.press(low)
    await look('email-choices')
    await until('the choice is kept', async () => {
      const kept = await service.database.alerts.readEmailChoices(user.id)
      return kept.get(user.accountId)?.includes('balance.low') === false
    })
    await service.database.wallets.adjust(user.accountId, 50n * ONE_CREDIT, { reason: 'test' })
    await service.database.wallets.adjust(user.accountId, -50n * ONE_CREDIT, { reason: 'test' })
    await eventually('the webhook comes', () => receiver.received[3])
    t.equal(mails.to(user.email).length, 1, 'and no mail')
  })
})
