/**
 * A browser for tests of the console. Every test has a separate context with separate cookies; an error in the page's
 * console fails the test.
 */
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import axe, { type Result } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import t from 'tap'
import { launchChromium } from './launch-chromium.ts'
import { readTypeScale } from './type-scale.ts'

const SCREENSHOTS = fileURLToPath(new URL('../screenshots/', import.meta.url))
const HEIGHT = 900
/** What a page does not show by then never comes. Generous, as machines that run tests are busy. */
const ACTION_BOUND_MS = 30_000
const WIDE = 1440
/** Beside the navigation a page has less room than on many a tablet. */
const MEDIUM = 1024
const NARROW = 390
/** Axe's own words for what keeps people from using a page. */
const GRAVE = ['serious', 'critical']
/** A refusal of the API, or of a card, is an answer, which the page shows; Chromium reports it as an error all the same. */
const REFUSAL = /^Failed to load resource: the server responded with a status of 4\d\d/
/** So is a stream of the API that the provider cuts off. */
const CUT_OFF = 'net::ERR_INCOMPLETE_CHUNKED_ENCODING'
const API_PATHS = ['/api/', '/v1/', '/checkout/']

interface Assertions {
  same(found: unknown, wanted: unknown, message: string): boolean
}

let launched: Promise<Browser> | null = null

/** Starts the browser of this process, once; it ends with the tests of this process, however they end. */
async function launch(): Promise<Browser> {
  const browser = await launchChromium(['--disable-background-networking', '--disable-gpu'])
  t.teardown(() => browser.close())
  return browser
}

/** Opens a page, gives it to `visit`, and closes it. Errors in its console and violations of its policy fail the test. */
export async function withPage<Result>(
  t: Assertions,
  name: string,
  visit: (page: Page) => Promise<Result>,
): Promise<Result> {
  launched ??= launch()
  const context = await (await launched).newContext({ viewport: { width: WIDE, height: HEIGHT } })
  context.setDefaultTimeout(ACTION_BOUND_MS)
  const complaints = collectComplaints(context)
  const page = await context.newPage()
  try {
    const result = await visit(page)
    t.same(complaints, [], `${name}: the browser has nothing to complain about`)
    return result
  } catch (error) {
    await takeScreenshot(page, `failed-${name}`).catch(() => undefined)
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}\n${complaints.join('\n')}`, {
      cause: error,
    })
  } finally {
    await context.close()
  }
}

/** The story itself has taken the network away. */
const OFFLINE = 'net::ERR_INTERNET_DISCONNECTED'

const isOfApi = (url: string): boolean => API_PATHS.some((path) => URL.parse(url)?.pathname.startsWith(path))

function collectComplaints(context: BrowserContext): string[] {
  const complaints: string[] = []
  context.on('weberror', (error) => complaints.push(`error: ${error.error().stack}`))
  context.on('console', (message) => {
    const { url } = message.location()
    const isAnswer = (REFUSAL.test(message.text()) || message.text().endsWith(CUT_OFF)) && isOfApi(url)
    const isExpected = isAnswer || message.text().endsWith(OFFLINE)
    if (message.type() === 'error' && !isExpected) complaints.push(`console: ${message.text()} (${url})`)
  })
  context.on('requestfailed', (request) => {
    // A page that is left ends its own requests.
    const reason = request.failure()?.errorText
    const isCutOff = reason === CUT_OFF && isOfApi(request.url())
    if (reason !== 'net::ERR_ABORTED' && reason !== OFFLINE && !isCutOff)
      complaints.push(`request: ${reason} ${request.url()}`)
  })
  return complaints
}

/** A passkey that always says yes, in this page. */
export async function addAuthenticator(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/**
 * Photographs a page in both themes on a desk, on a smaller screen and on a telephone, and checks it in each theme and at each width:
 * axe finds nothing serious, nothing overflows sideways, and text
 * has the sizes of the scale.
 */
export async function inspectPage(t: Assertions, page: Page, name: string): Promise<void> {
  for (const [colorScheme, width] of [
    ['light', WIDE],
    ['dark', WIDE],
    ['dark', MEDIUM],
    ['light', MEDIUM],
    ['dark', NARROW],
    ['light', NARROW],
  ] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: HEIGHT })
    const view = `${name}-${colorScheme}-${width}`
    await takeScreenshot(page, view)
    t.same(await page.evaluate<string[]>(OVERFLOW), [], `${view}: nothing sticks out at the side`)
    t.same(await page.evaluate<string[]>(OFF_SCALE), [], `${view}: every size of type is one of the scale`)
    if ((colorScheme === 'light') === (width === WIDE)) t.same(await barriersOf(page), [], `${view}: axe`)
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null })
  await page.setViewportSize({ width: WIDE, height: HEIGHT })
}

async function takeScreenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true })
  await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, fullPage: true, animations: 'disabled' })
}

/** Run in the page, which axe is in. What axe has no objection to is most of what it finds, and takes the most time. */
const VIOLATIONS = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)`

/** What axe finds that keeps people from using the page: the rule, what it asks, and where it is broken. */
async function barriersOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  const violations = await page.evaluate<Result[]>(VIOLATIONS)
  return violations
    .filter(({ impact }) => GRAVE.includes(impact ?? ''))
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ''}`).join(' | ')}`,
    )
}

/** The text sizes that the console declares, in rem. */
const TYPE_SCALE = readTypeScale()

/** Runs in the page: lists the elements whose text has a size outside the scale. */
const OFF_SCALE = `
  [...document.querySelectorAll('body *:not(script, style)')]
    .filter((one) =>
      one.matches('input, select, textarea') ||
      [...one.childNodes].some(({ nodeType, textContent }) => nodeType === Node.TEXT_NODE && textContent.trim() !== ''))
    .filter((one) => {
      const rem = parseFloat(getComputedStyle(one).fontSize) / parseFloat(getComputedStyle(document.documentElement).fontSize)
      return !${JSON.stringify(Object.values(TYPE_SCALE))}.some((size) => Math.abs(size - rem) < 0.001)
    })
    .map((one) => getComputedStyle(one).fontSize + ' ' + one.outerHTML.slice(0, 200))`

/** Run in the page: the innermost elements that make it wider than the window; empty where it fits. */
const OVERFLOW = `
  document.documentElement.scrollWidth <= innerWidth
    ? []
    : [...document.querySelectorAll('body *')]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && one.childElementCount === 0)
        .map((one) => one.outerHTML.slice(0, 200))`
