/** Every page that the console offers, and the first detail of each, asks the service only for what its reader may see. */
import type { Page, Request } from 'playwright-core'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { AGENT, newOrganization, STORY_CONFIG, signIn } from './support.ts'

const REFUSED = [401, 403, 404]
/** A page has all that it asks for when it has asked for nothing in this time. */
const QUIET_MS = 150

/** Records what the page is refused, and waits until it has asked for everything. Streams do not end. */
function watchRequests(page: Page) {
  const refused: string[] = []
  const open = new Set<Request>()
  let changedAt = 0
  const change = (act: (request: Request) => unknown) => (request: Request) => {
    if (request.resourceType() === 'eventsource') return
    act(request)
    changedAt = performance.now()
  }
  page.on(
    'request',
    change((request) => open.add(request)),
  )
  for (const end of ['requestfinished', 'requestfailed'] as const)
    page.on(
      end as 'requestfinished',
      change((request) => open.delete(request)),
    )
  page.on('response', (response) => {
    const { pathname } = new URL(response.url())
    if (REFUSED.includes(response.status()))
      refused.push(`${new URL(page.url()).pathname}: ${response.status()} ${pathname}`)
  })
  const isQuiet = () => open.size === 0 && performance.now() - changedAt > QUIET_MS
  return { refused, settled: () => until('the page has all that it asks for', isQuiet) }
}

t.test('readers', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { baseUrl, database } = service
  const credit = 1_000n * ONE_CREDIT
  const boss = await database.users.create({
    email: `boss-${process.pid}@example.com`,
    name: 'Boss',
    credit: 0n,
  })
  const account = await newOrganization(service, { name: 'Acme readers', credit }, boss)
  await database.agents.create(account.id, AGENT)
  await database.knowledge.createBase(account.id, 'Handbook')

  for (const role of ['owner', 'admin', 'billing', 'member', 'auditor', 'operator'] as const)
    await t.test(role, (t) =>
      withPage(t, `reader ${role}`, async (page) => {
        const isOfInstallation = role === 'auditor' || role === 'operator'
        const { accountId } = await signIn(service, page, { name: 'Rita', ...(isOfInstallation && { role }) })
        if (!isOfInstallation) await database.organizations.putMember(account.id, accountId, role)
        if (role === 'member') {
          const asked = { organizationId: account.id, memberId: accountId, name: 'Desk' }
          const { id: requestId } = await database.keyRequests.create(asked)
          await database.keyRequests.approve({ requestId, by: boss.accountId, spendCap: credit })
        }
        const { refused, settled } = watchRequests(page)
        await page.goto(`${baseUrl}/console/?account=${account.id}`)
        const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
        await links.first().waitFor()
        const names = await links.allTextContents()
        t.ok(names.length > 5)
        for (const name of names) {
          await links.filter({ hasText: name }).first().click()
          await page.getByRole('heading', { name, level: 1 }).waitFor()
          await settled()
          const detail = page.getByRole('main').getByRole('row').getByRole('link').first()
          if (!(await detail.isVisible())) continue
          await detail.click()
          await settled()
          await page.goBack()
        }
        t.same(refused, [])
      }),
    )
})
