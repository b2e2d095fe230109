/** An owner sets up an endpoint and a threshold, and is alerted by email and by webhook. */
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { startReceiver } from '../pipelines/notifications/support.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { eventually } from '../support/eventually.ts'
import { startMailServer } from '../support/mail-server.ts'
import { startService, testConfig } from '../support/service.ts'
import { button, heading, link, row, signIn } from './support.ts'

t.test('alerts', async (t) => {
  const mails = await startMailServer(t)
  const receiver = await startReceiver(t)
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
  await withPage(t, 'webhooks', async (page) => {
    const user = await signIn(service, page, { name: 'Alma', credit: '100' })
    await link(page, 'Webhooks').click()
    await heading(page, 'Webhooks').waitFor()
    await button(page, 'Add an endpoint').click()
    const form = page.getByRole('dialog', { name: 'Add an endpoint' })
    await form.getByLabel('Address').fill(receiver.url)
    await form.getByLabel('All events').uncheck()
    await form.getByLabel('balance.low').check()
    await inspectPage(t, page, 'webhook-form')
    await button(form, 'Add').click()
    const shown = page.getByRole('dialog', { name: 'Secret of the endpoint' })
    const secret = (await shown.locator('pre').first().textContent())!.trim()
    await button(shown, 'Done').click()
    await row(page, receiver.url).getByText('Active', { exact: true }).waitFor()

    await link(page, 'Billing').click()
    await page.getByLabel('Below').fill('60')
    await button(page, 'Save').click()
    await eventually('the threshold is set', async () =>
      (await service.database.readLowBalance(user.accountId)) === 60n * ONE_CREDIT ? true : undefined,
    )
    await inspectPage(t, page, 'billing-alerts')
    await service.database.adjust(user.accountId, -50n * ONE_CREDIT, { reason: 'test' })
    const hook = await eventually('the webhook', () => receiver.received[0])
    t.match(new Webhook(secret).verify(hook.body, hook.headers), {
      type: 'balance.low',
      data: { balance: '50', threshold: '60' },
    })
    t.match((await mailTo(user.email, 1)).headers, /^Subject: The balance of Alma is low$/m)

    await link(page, 'Home').click()
    const alert = page.getByRole('alert').filter({ hasText: 'The balance is below 60 credits.' })
    await alert.waitFor()
    await inspectPage(t, page, 'home-alert')
    await alert.getByRole('link', { name: 'Billing' }).click()
    await heading(page, 'Billing').waitFor()

    await link(page, 'Webhooks').click()
    await page.getByRole('link', { name: 'balance.low', exact: true }).click()
    const delivery = page.getByRole('dialog', { name: 'Delivery' })
    await delivery.getByText('webhook-signature').waitFor()
    await delivery.getByText('"threshold": "60"').waitFor()
    await inspectPage(t, page, 'webhook-delivery')
    await button(delivery, 'Send again').click()
    const again = await eventually('it is sent again', () => receiver.received[1])
    t.equal(again.headers['webhook-id'], hook.headers['webhook-id'], 'the event is the same one')
    await page.keyboard.press('Escape')

    await button(page, 'Show the secret').click()
    const callbacks = page.getByRole('dialog', { name: 'Secret of callbacks' })
    const shownSecret = (await callbacks.locator('pre').first().textContent())!.trim()
    t.match(shownSecret, /^whsec_/)
    t.not(shownSecret, secret)
    await inspectPage(t, page, 'callback-secret')
    await button(callbacks, 'Done').click()
    await button(page.locator('section').filter({ hasText: 'Callbacks of tasks' }), 'Rotate secret').click()
    await callbacks.waitFor()
    t.not((await callbacks.locator('pre').first().textContent())!.trim(), shownSecret)
    await button(callbacks, 'Done').click()

    await page.goto(`${service.baseUrl}/console/profile`)
    const low = page.getByLabel('The balance is low')
    await low.waitFor()
    t.ok(await low.isChecked(), 'owners get it unless they choose otherwise')
    await low.click()
    await inspectPage(t, page, 'email-choices')
    await eventually('the choice is kept', async () => {
      const kept = await service.database.readEmailChoices(user.id)
      return kept.get(user.accountId)?.includes('balance.low') === false || undefined
    })
    await service.database.adjust(user.accountId, 50n * ONE_CREDIT, { reason: 'test' })
    await service.database.adjust(user.accountId, -50n * ONE_CREDIT, { reason: 'test' })
    await eventually('the webhook comes', () => receiver.received[2])
    t.equal(mails.to(user.email).length, 1, 'and no mail')
  })
})
