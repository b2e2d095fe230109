/** Markup in every text that people write and the console shows: it is text on every page, and runs nowhere. */
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { AGENT, callsInLog, heading, link, newOrganization, STORY_CONFIG, signIn } from './support.ts'

const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'
/** Names may have 100 characters. */
const named = (what: string): string => `${MARKUP} ${what}`.slice(0, 100)

/** Run in the page: whether any of it became an element, or ran. */
const HARM = `window.ran === 1 || document.querySelector('img[src="x"], body script:not([type="module"])') !== null`

const PAGES = [
  'Home',
  'Calls',
  'Usage',
  'Tasks',
  'Knowledge',
  'Keys',
  'Billing',
  'Audit',
  'Members',
  'Agents',
  'Overview',
  'Accounts',
  'Catalog',
  'Integrity',
  'Users',
]

t.test('stored markup', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database, baseUrl } = service
  await withPage(t, 'stored markup', async (page) => {
    const user = await signIn(service, page, { name: named('user'), role: 'operator' })
    const credit = 1_000_000n * ONE_CREDIT
    const account = await newOrganization(service, { name: named('organization'), credit }, user)
    const { key, raw } = await database.keys.create({
      accountId: account.id,
      name: named('key'),
      accountLogs: true,
    })
    const agent = await database.agents.create(account.id, {
      ...AGENT,
      name: named('agent'),
      persona: MARKUP,
    })
    const base = await database.knowledge.createBase(account.id, named('base'))
    await database.keyRequests.create({
      organizationId: account.id,
      memberId: user.accountId,
      name: named('wish'),
      note: MARKUP,
    })
    await database.wallets.adjust(account.id, 100n, { reason: MARKUP })
    await database.savedViews.save(user.id, { page: 'calls', name: named('view'), query: 'status=error' })
    const messages = [{ role: 'user', content: MARKUP }]
    t.equal((await service.chat(raw, { model: 'fast', messages })).status, 200)
    t.ok((await service.chat(raw, { model: 'broken', messages })).status >= 500)
    await callsInLog(service, raw, 2)

    await page.goto(`${baseUrl}/console/?account=${account.id}`)
    for (const name of PAGES) {
      await link(page, name).click()
      await heading(page, name).waitFor()
      await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => undefined)
      t.notOk(await page.evaluate(HARM), name)
    }
    const here = `account=${account.id}`
    for (const [path, text] of [
      [`keys?${here}&key=${key.id}`, named('key')],
      [`agents?${here}&agent=${agent.id}`, named('agent')],
      [`knowledge?${here}&base=${base.id}`, named('base')],
      [`accounts?${here}&open=${account.id}`, MARKUP],
      [`members?${here}`, named('wish')],
      [`calls?${here}`, named('view')],
    ] as const) {
      await page.goto(`${baseUrl}/console/${path}`)
      await page.getByText(text).filter({ visible: true }).first().waitFor()
      t.notOk(await page.evaluate(HARM), path)
    }
  })
})
