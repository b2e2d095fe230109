/** The page of calls in a browser: the time from the click to the first rows on the screen. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../../test/support/launch-chromium.ts'
import { computeQuantiles, type Quantiles } from '../../harness/statistics.ts'
import { type Account, END_MS } from '../rows/population.ts'
import type { RunningService } from './service.ts'

export interface BrowserTimes extends Quantiles {
  readonly samples: number
}

const BOUND_MS = 20_000
const VIEWPORT = { width: 1440, height: 900 }

const DAY_MS = 24 * 60 * 60 * 1000
const toDay = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, 10)
/** The rows are of the past: the last 30 days of them, in place of the last 30 days, which the page shows by itself. */
const WINDOW = { from: toDay(END_MS - 30 * DAY_MS), to: toDay(END_MS - DAY_MS) }

/**
 * Run in the page: goes to Calls as its link does, and returns the milliseconds until a frame with rows of the log was
 * drawn. The code of the page is loaded in that time: no pointer over the link has asked for it before.
 */
const clickToRows = (account: string): string => `new Promise((resolve) => {
  const startedAt = performance.now()
  const hasRows = () => document.querySelectorAll('section[aria-label="Calls"] tbody tr a').length > 0
  const check = () =>
    hasRows()
      ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startedAt)))
      : requestAnimationFrame(check)
  history.pushState({}, '', '/console/calls?${new URLSearchParams({ account, ...WINDOW })}')
  dispatchEvent(new PopStateEvent('popstate'))
  check()
})`

const timeOnce = async (page: Page, baseUrl: string, account: string): Promise<number> => {
  // A page that is loaded again has no answer of a sample before; its files are in the cache of the browser.
  await page.goto(`${baseUrl}/console/?account=${account}`)
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  return Promise.race([
    page.evaluate<number>(clickToRows(account)),
    pause(BOUND_MS, null, { ref: false }).then(async () => {
      throw new Error(`no rows within ${BOUND_MS} ms: ${await page.locator('main').textContent()}`)
    }),
  ])
}

const timeIn = async (
  browser: Browser,
  { baseUrl, makeSignInLink }: RunningService,
  account: Account,
  samples: number,
): Promise<BrowserTimes> => {
  const page = await browser.newPage({ viewport: VIEWPORT })
  await page.goto(await makeSignInLink(account.id))
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  await timeOnce(page, baseUrl, account.id)
  const times: number[] = []
  while (times.length < samples) times.push(await timeOnce(page, baseUrl, account.id))
  return { ...computeQuantiles(times), samples }
}

/** Times the first page of Calls of an account. The first sample, which fills the caches, does not count. */
export const timeCallsPage = async (
  service: RunningService,
  account: Account,
  samples: number,
): Promise<BrowserTimes> => {
  const browser = await launchChromium(['--disable-gpu'])
  try {
    return await timeIn(browser, service, account, samples)
  } finally {
    await browser.close()
  }
}
