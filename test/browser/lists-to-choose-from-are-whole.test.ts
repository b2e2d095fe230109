/** Lists to choose from have every entry, however many pages the service makes of them. */
import t from 'tap'
import { parseCredits } from '../../schemas/money.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, newOrganization, row, STORY_CONFIG, signIn } from './support.ts'

/** More than the service puts in a page. */
const KEYS = 203
const MEMBERS = 68
const PERIODS = ['day', 'week', 'month'] as const

t.test('lists', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database, baseUrl } = service
  await withPage(t, 'lists', async (page) => {
    const anna = await signIn(service, page, { name: 'Anna' })
    const { id: accountId } = await newOrganization(service, { name: 'Acme' }, anna)

    await t.test('keys of an account, in filters', async (t) => {
      const ids: string[] = []
      for (let at = 1; at <= KEYS; at++)
        ids.push((await database.keys.create({ accountId, name: `key ${at}` })).key.id)
      const last = ids.toSorted().at(-1)!
      const { name } = await database.keys.show(last)
      await page.goto(`${baseUrl}/console/usage?account=${accountId}`)
      const keyFilter = page.getByLabel('Key', { exact: true })
      await keyFilter.selectOption({ label: name })
      await page.waitForURL((url) => url.searchParams.get('key_id') === last)
      const { account: other } = await database.accounts.create({ name: 'Other', credit: 0n })
      const foreign = (await database.keys.create({ accountId: other.id, name: 'foreign' })).key.id
      await page.goto(`${baseUrl}/console/usage?account=${accountId}&key_id=${foreign}`)
      await keyFilter.locator(`option:checked[value="${foreign}"]`).waitFor({ state: 'attached' })
      await page.goto(`${baseUrl}/console/calls?account=${accountId}&key_id=${last}`)
      await button(page, `Remove the filter Key: ${name}`).waitFor()
      await page.goto(`${baseUrl}/console/calls?account=${accountId}&key_id=${foreign}`)
      await button(page, `Remove the filter Key: ${foreign}`).waitFor()
      await inspectPage(t, page, 'calls-key-not-listed')
    })

    await t.test('budgets of members', async (t) => {
      let lastName = ''
      for (let at = 1; at <= MEMBERS; at++) {
        lastName = `member ${at}`
        const { id: member } = (await database.accounts.create({ name: lastName, credit: 0n })).account
        await database.organizations.putMember(accountId, member, 'member')
        for (const period of at === MEMBERS ? PERIODS.slice(0, 1) : PERIODS) {
          const amount = parseCredits('5')
          const of = { accountId, scope: 'member', subjectId: member } as const
          await database.budgets.put({ ...of, amount, period, timezone: 'UTC' })
        }
      }
      await page.goto(`${baseUrl}/console/members?account=${accountId}`)
      await heading(page, 'Members').waitFor()
      await button(page.getByRole('region', { name: 'Members' }).locator('..'), 'Show more').click()
      const shown = row(page, lastName).getByRole('meter')
      await shown.waitFor()
      t.equal(await shown.count(), 1)
      await inspectPage(t, page, 'members-many')
    })
  })
})
