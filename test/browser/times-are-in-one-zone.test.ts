/** Every page has the reader's time zone, and names it: its filters, columns and axes, and the days that a range means. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, callsInLog, heading, link, row, STORY_CONFIG, signIn } from './support.ts'

const printDay = (timeZone: string) => new Date().toLocaleDateString('sv-SE', { timeZone })
/** It is another day there than in UTC, at any time. */
const ZONE = ['Pacific/Kiritimati', 'Pacific/Honolulu'].find((zone) => printDay(zone) !== printDay('UTC'))!

/** Moves the browser of a page to a time zone. */
async function moveTo(page: Page, timezoneId: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Emulation.setTimezoneOverride', { timezoneId })
}

t.test('time zone', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'time zone', async (page) => {
    await moveTo(page, ZONE)
    const user = await signIn(service, page, { name: 'Tim', role: 'operator' })
    const { raw } = await service.database.keys.create({
      accountId: user.accountId,
      name: 'clock',
      accountLogs: true,
    })
    const call = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }] }
    t.equal((await service.chat(raw, call)).status, 200)
    await callsInLog(service, raw, 1)
    const { database } = service
    const paid = { kind: 'checkout', credits: 500n * ONE_CREDIT, amount: 500n, currency: 'usd' } as const
    await database.payments.create({ accountId: user.accountId, ...paid })
    const hook = { kind: 'webhook', url: 'https://example.com/', description: '', events: null } as const
    const { endpoint } = await database.webhooks.create({ accountId: user.accountId, ...hook })
    await database.webhooks.test({ id: endpoint.id, accountId: user.accountId })

    /** Looks at each page as its reader sees it in a zone. */
    const lookIn = async (zone: string) => {
      const day = printDay(zone)
      const column = (name: string) =>
        page.getByRole('columnheader', { name: `${name} (${zone})`, exact: true }).first()
      const findInChart = async (title: string) => {
        const chart = page.getByRole('figure').filter({ hasText: title })
        await chart.getByText(zone, { exact: true }).waitFor()
        await chart.getByText('As a table').click()
        return row(chart, `${day} 00:00:00`)
      }
      await link(page, 'Usage').click()
      await page.getByLabel(`Period (${zone})`).selectOption('today')
      await until('the calls are summed up', async () => {
        await page.reload()
        await heading(page, 'Usage').waitFor()
        const found = page.getByRole('figure').or(page.getByText('There are no calls in this period.'))
        await found.first().waitFor()
        return (await page.getByRole('figure').count()) > 0
      })
      const cost = await findInChart('Cost in credits')
      t.match(await cost.textContent(), /16\.00/, `${zone}: the call is of the reader's day`)
      t.equal(await page.getByRole('figure').first().getByRole('row').count(), 2, 'which is the only one')
      await inspectPage(t, page, `usage-zone-${zone === 'UTC' ? 'utc' : 'local'}`)
      await link(page, 'Home').click()
      t.match(await (await findInChart('Spend per day, in credits')).textContent(), /16\.00/)
      await link(page, 'Billing').click()
      await page.locator(`time[datetime="${day}"]`).waitFor()
      await page.getByLabel(`Day (${zone})`).fill(day)
      await column('Time').waitFor()
      await row(page, 'Trial credit').waitFor()
      await link(page, 'All calls').click()
      await page.getByLabel(`Period (${zone})`).waitFor()
      await row(page, 'fast').first().waitFor()
      await column('Time').waitFor()
      await link(page, 'Keys').click()
      await row(page, 'clock').getByText(day).first().waitFor()
      await column('Created').waitFor()
      await button(page, 'Create a key').click()
      await page.getByLabel(`Expires (${zone})`).waitFor()
      await page.keyboard.press('Escape')
      await link(page, 'Overview').click()
      await column('Since').waitFor()
      for (const [name, text] of [
        ['Audit', 'key.create'],
        ['Payments', '5.00 USD'],
        ['Webhooks', 'webhook.test'],
        ['Tasks', null],
      ] as const) {
        await link(page, name).click()
        await heading(page, name).waitFor()
        await page.getByLabel(`Period (${zone})`).selectOption('range')
        await page.waitForURL(/from=/)
        t.equal(new URL(page.url()).searchParams.get('from'), day, `${name}: today is the reader's day`)
        if (text === null) continue
        const found = row(page, text).first()
        await found.waitFor()
        t.match(await found.locator('time').first().getAttribute('title'), `(${zone}), 20`)
        await inspectPage(t, page, `${name.toLowerCase()}-of-a-day-${zone === 'UTC' ? 'utc' : 'local'}`)
        // The same instant is on another day elsewhere.
        const elsewhere = printDay(zone === 'UTC' ? ZONE : 'UTC')
        for (const end of ['From', 'To']) await page.getByLabel(end, { exact: true }).fill(elsewhere)
        await page.getByText(/^No (operations|payments|deliveries) match\.$/).waitFor()
      }
    }
    await lookIn(ZONE)
    await page.getByText('Settings', { exact: true }).click()
    await page.getByLabel('Time zone').selectOption('utc')
    await page.waitForLoadState('load')
    await lookIn('UTC')
  })
})
