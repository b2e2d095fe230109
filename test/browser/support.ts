/** The people of the stories, and how each of them comes to the console. */
import type { Locator, Page, Response } from 'playwright-core'
import type { Test } from 'tap'
import type { MemberRole } from '../../schemas/accounts/organization.ts'
import type { InstallationRole } from '../../schemas/management/operation.ts'
import { parseCredits } from '../../schemas/money.ts'
import { generateToken, hashToken } from '../../src/core/keys/bearer-token.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { HANDS, type Hand, mouse } from '../support/hands.ts'
import { type LentService, testConfig } from '../support/service.ts'
import { isCopied } from '../support/service-client.ts'

/** An agent without knowledge and tools. */
export const AGENT = {
  name: 'Clerk',
  model: 'fast',
  persona: 'A clerk.',
  temperature: null,
  knowledge: [],
  web_search: false,
  image_generation: false,
}

/** One configuration for all stories, so that they share a service. */
export const STORY_CONFIG = testConfig({
  fast: { simulate: 'text=Hello%20from%20here,prompt_tokens=10,tokens=5' },
  broken: { simulate: 'fault=status:500' },
})
/** What a call of `fast` costs. */
export const FAST_COST = '16'

const LINK_MINUTES = 15
let people = 0

interface Person {
  readonly name: string
  readonly credit?: string
  readonly role?: InstallationRole
}

/** Creates a user with an account and opens the console by their sign-in link. */
export async function signIn(
  { baseUrl, database }: LentService,
  page: Page,
  { name, credit = '1000000', role }: Person,
) {
  people += 1
  const email = `${name.toLowerCase()}-${process.pid}-${people}@example.com`
  const user = await database.users.create({
    email,
    name,
    installationRole: role ?? null,
    credit: parseCredits(credit),
  })
  const token = generateToken()
  await database.sessions.createLink({ tokenHash: hashToken(token), userId: user.id, minutes: LINK_MINUTES })
  await page.goto(`${baseUrl}/console/sign-in#link=${token}`)
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  return user
}

/** Creates an organization, and makes a user a member of it. */
export async function newOrganization(
  { database }: LentService,
  { name, credit = 0n, role = 'owner' }: { name: string; credit?: bigint; role?: MemberRole },
  { accountId }: { readonly accountId: string },
) {
  const { account } = await database.accounts.create({ name, kind: 'organization', credit })
  await database.organizations.putMember(account.id, accountId, role)
  return account
}

interface Visit {
  readonly hand: Hand
  readonly page: Page
  /** Inspects a page, of the visit by default. With the mouse alone: both hands see the same pages. */
  look(name: string, shown?: Page): Promise<void>
}

/** Runs a scenario once with the mouse and once with the keyboard, each time in a new test and on a new page. */
export async function withEachHand(
  t: Test,
  scenario: string,
  run: (t: Test, visit: Visit) => Promise<void>,
): Promise<void> {
  for (const hand of HANDS)
    await t.test(hand.name, (t) =>
      withPage(t, `${scenario} ${hand.name}`, (page) => {
        const look = async (name: string, shown = page) => {
          if (hand === mouse) await inspectPage(t, shown, name)
        }
        return run(t, { hand, page, look })
      }),
    )
}

/** Waits until the log of the key's account has this many calls: a page that is opened earlier shows fewer. */
export async function callsInLog(
  { baseUrl, database }: LentService,
  key: string,
  count: number,
): Promise<void> {
  await until(`${count} calls are in the log`, async () => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${baseUrl}/v1/logs?scope=account`, { headers })
    const { data = [] } = (await response.json()) as { data?: { id: number }[] }
    return data.length === count && isCopied(database, data)
  })
}

export const button = (page: Page | Locator, name: string): Locator =>
  page.getByRole('button', { name, exact: true })

/** The link of a page in the navigation. A count may follow its name. */
export const link = (page: Page, name: string): Locator =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: new RegExp(`^${name}\\b`) })

export const heading = (page: Page, name: string): Locator => page.getByRole('heading', { name, level: 1 })

/** The row of a table that has this text. */
export const row = (page: Page | Locator, text: string): Locator =>
  page.getByRole('row').filter({ hasText: text })

/** Chooses a filter of calls by a part of its value and the name that is suggested. */
export async function chooseFilter(
  { hand, page }: Pick<Visit, 'hand' | 'page'>,
  typed: string,
  name: string,
): Promise<void> {
  await hand.write(page.getByRole('combobox', { name: 'Add a filter' }), typed)
  const option = page.getByRole('option', { name, exact: true })
  await option.waitFor()
  if (hand === mouse) return option.click()
  while ((await option.getAttribute('data-highlighted')) === null) await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
}

/** Drags over a part of the first chart. Returns the range that the page then shows. */
export async function dragOver(page: Page, from: number, to: number) {
  const over = page.getByRole('slider').first().locator('.u-over')
  // Scrolls to it once it is drawn for good.
  await over.hover()
  const { x, y, width, height } = (await over.boundingBox())!
  await page.mouse.move(x + width * from, y + height / 2)
  await page.mouse.down()
  await page.mouse.move(x + width * to, y + height / 2, { steps: 5 })
  const isOfRange = (response: Response) => response.url().includes('from=')
  await Promise.all([page.waitForResponse(isOfRange), page.mouse.up()])
  await page.waitForURL(/from=/)
  const search = new URL(page.url()).searchParams
  return [search.get('from'), search.get('to')]
}

const API = '**/api/**'

/** Takes the service away from a page, and the network from its browser. */
export async function takeAway(page: Page): Promise<void> {
  // A request that a page ends by itself is no complaint.
  await page.route(API, (route) => route.abort('aborted'))
  await page.context().setOffline(true)
}

export async function bringBack(page: Page): Promise<void> {
  await page.context().setOffline(false)
  await page.unroute(API)
}
