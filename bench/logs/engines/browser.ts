/** The page of calls in a browser: the time from the click to the first rows on the screen. */
import { type Browser, chromium, type Page } from 'playwright-core'
import { findChromium } from '../../../test/support/chromium-binary.ts'
import { type Quantiles, quantilesOf } from '../../harness/statistics.ts'
import type { Account } from '../rows/population.ts'
import type { RunningService } from './service.ts'

export interface BrowserTimes extends Quantiles {
  readonly samples: number
}

const VIEWPORT = { width: 1440, height: 900 }

/**
 * Run in the page: clicks the link to Calls, and returns the milliseconds until a frame with rows of the log was drawn.
 * The click comes without the pointer before it, which would load the code of the page.
 */
const CLICK_TO_ROWS = `new Promise((resolve) => {
  const startedAt = performance.now()
  const hasRows = () => document.querySelectorAll('section[aria-label="Calls"] tbody tr a').length > 0
  const look = () =>
    hasRows()
      ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - startedAt)))
      : requestAnimationFrame(look)
  document.querySelector('nav a[href^="/console/calls"]').click()
  look()
})`

const timeOnce = async (page: Page, home: string): Promise<number> => {
  // A page that is loaded anew has no answer of a sample before; its files are in the cache of the browser.
  await page.goto(home)
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  return page.evaluate<number>(CLICK_TO_ROWS)
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
  const home = `${baseUrl}/console/?account=${account.id}`
  await timeOnce(page, home)
  const times: number[] = []
  while (times.length < samples) times.push(await timeOnce(page, home))
  return { ...quantilesOf(times), samples }
}

/** Times the first page of Calls of an account. The first sample, which fills the caches, does not count. */
export const timeCallsPage = async (
  service: RunningService,
  account: Account,
  samples: number,
): Promise<BrowserTimes> => {
  const { path, env } = await findChromium()
  const browser = await chromium.launch({
    executablePath: path,
    env: env as Record<string, string>,
    chromiumSandbox: false,
    args: ['--disable-gpu'],
  })
  try {
    return await timeIn(browser, service, account, samples)
  } finally {
    await browser.close()
  }
}
